; What `native_crew.py` has done without Python's lock, in LLVM's language, for Linux on x86-64.
;
; A box has the address of a job, whose three lowest bits are 0, or tells of none:
;   0        the helper looks at the box;
;   2        the helper sleeps, or is about to;
;   job      its owner has offered it: takes it back, or the helper begins it;
;   job | 1  the helper is at it;
;   job | 3  and its owner sleeps until it is done.
; Who changes 2 or job | 3 wakes the one that sleeps. Only the owner of a job puts it into a box, and
; lets go of it when no box has it any more.

; A job is on its owner's stack; a plan and its parts are made in Python (`Plan`, `_Part`). Of four
; pointers or numbers, three are for the factors and the product, and a fourth pointer says where
; the status goes.

%job = type {
  i64,        ; 0: the part that is next
  ptr,        ; 1: the plan
  <4 x ptr>,  ; 2: the arrays
  i64         ; 3: the status: 0 unless a gemm has failed
}
%plan = type {
  ptr, i64,   ; 0, 1: gemm, and whose: BLAS's, which takes numbers as float (0), as double (1), by
              ;       address (2), or oneDNN's (3)
  ptr, ptr,   ; 2, 3: the addresses of one and zero
  i32, i32,   ; 4, 5: how gemm is told whether the factors are stored by rows or by columns
  [4 x i64],  ; 6: how many numbers rows, or columns, are apart
  [4 x i64],  ; 7: how many bytes an array goes on by along the batch's first axis,
  [4 x i64],  ; 8: and along its second
  i64,        ; 9: the size of the axis that is summed over
  i64,        ; 10: how many parts there are
  ptr         ; 11: the parts
}
%part = type {
  [4 x i64],  ; 0: how many bytes after its beginning each array is used
  [4 x i64]   ; 1: the sizes of the product's axes: two of a batch, rows, columns
}

declare void @llvm.x86.sse2.pause()
declare i64 @llvm.readcyclecounter()

; Sleep as long as the lowest 32 bits of a box are those of a state, or shorter.
define private void @sleep(ptr %box, i64 %state) {
  %_ = call i64 asm sideeffect "syscall", "={rax},{rax},{rdi},{rsi},{rdx},{r10},~{rcx},~{r11},~{memory}"(
      i64 202, ptr %box, i64 128, i64 %state, i64 0)
  ret void
}

; Wake who sleeps at a box.
define private void @wake(ptr %box) {
  %_ = call i64 asm sideeffect "syscall", "={rax},{rax},{rdi},{rsi},{rdx},~{rcx},~{r11},~{memory}"(
      i64 202, ptr %box, i64 129, i64 2147483647)
  ret void
}

; Times are in cycles of the processor's clock, some 0.4 ns each. To sleep and be woken takes 100,000
; and more on a quiet machine, whose processors sleep too when nothing is to do.
@a_moment = private constant i64 20000
@a_while = private constant i64 2500000
; If offering the processor takes longer than this, 0.2 ms, and somebody took it, the machine is busy,
; and for a spell is taken to be. On a virtual machine time passes also while its host runs others:
; who sleeps then waits for the host too, so that is no reason.
@a_turn = private constant i64 500000
@a_spell = private constant i64 40000000
@busy_at = private global i64 0

define private i1 @is_busy(i64 %now) {
  %last = load atomic i64, ptr @busy_at monotonic, align 8
  %spell = load i64, ptr @a_spell
  %ago = sub i64 %now, %last
  %is_busy = icmp ult i64 %ago, %spell
  ret i1 %is_busy
}

; Others have been seen to want a processor.
define void @notice_others() {
  %now = call i64 @llvm.readcyclecounter()
  store atomic i64 %now, ptr @busy_at monotonic, align 8
  ret void
}

; How often the system has had others run when this thread could have. The second of the last two
; numbers of what getrusage tells of a thread.
define private i64 @turns_of_others() {
  %usage = alloca [18 x i64]
  %status = call i64 asm sideeffect "syscall", "={rax},{rax},{rdi},{rsi},~{rcx},~{r11},~{memory}"(
      i64 98, i64 1, ptr %usage)
  %turns_at = getelementptr [18 x i64], ptr %usage, i32 0, i32 17
  %turns = load i64, ptr %turns_at
  %is_told = icmp eq i64 %status, 0
  %known = select i1 %is_told, i64 %turns, i64 0
  ret i64 %known
}

; Whether who has looked at a box since a time is to look once more. To see whether others want the
; processor, they are let run: on a busy machine nobody looks for longer than a moment.
define private i1 @goes_on(i64 %since) {
start:
  %now = call i64 @llvm.readcyclecounter()
  %spent = sub i64 %now, %since
  %moment = load i64, ptr @a_moment
  %is_short = icmp ult i64 %spent, %moment
  br i1 %is_short, label %pause, label %patience
pause:
  call void @llvm.x86.sse2.pause()
  ret i1 true
patience:
  %while = load i64, ptr @a_while
  %is_long = icmp uge i64 %spent, %while
  %is_busy = call i1 @is_busy(i64 %now)
  %is_over = or i1 %is_long, %is_busy
  br i1 %is_over, label %sleep, label %yield
yield:
  %turns = call i64 @turns_of_others()
  %before = call i64 @llvm.readcyclecounter()
  %_ = call i64 asm sideeffect "syscall", "={rax},{rax},~{rcx},~{r11},~{memory}"(i64 24)
  %then = call i64 @llvm.readcyclecounter()
  %away = sub i64 %then, %before
  %turn = load i64, ptr @a_turn
  %is_quiet = icmp ult i64 %away, %turn
  br i1 %is_quiet, label %more, label %late
late:
  %turns_then = call i64 @turns_of_others()
  %is_alone = icmp eq i64 %turns, %turns_then
  br i1 %is_alone, label %more, label %others
others:
  call void @notice_others()
  br label %more
more:
  ret i1 true
sleep:
  ret i1 false
}

; A helper's life: it ends with the process.
define void @help(ptr %box) {
start:
  br label %idle
idle:
  %since = call i64 @llvm.readcyclecounter()
  br label %look
look:
  %state = load atomic i64, ptr %box seq_cst, align 8
  %is_offered = icmp ugt i64 %state, 2
  br i1 %is_offered, label %begin, label %nothing
nothing:
  %goes_on = call i1 @goes_on(i64 %since)
  br i1 %goes_on, label %look, label %doze
doze:
  cmpxchg ptr %box, i64 0, i64 2 seq_cst seq_cst
  call void @sleep(ptr %box, i64 2)
  br label %idle
begin:
  %is_done = call zeroext i1 @begin(ptr %box, i64 %state)
  br i1 %is_done, label %idle, label %look
}

; Do what a box was seen to offer, unless its owner has taken that back since. Returns whether it
; was done.
define zeroext i1 @begin(ptr %box, i64 %state) {
start:
  %begun = or i64 %state, 1
  %change = cmpxchg ptr %box, i64 %state, i64 %begun seq_cst seq_cst
  %is_mine = extractvalue { i64, i1 } %change, 1
  br i1 %is_mine, label %work, label %leave
work:
  %job = inttoptr i64 %state to ptr
  call void @work(ptr %job)
  %last = atomicrmw xchg ptr %box, i64 0 seq_cst
  %awaited = icmp ne i64 %last, %begun
  br i1 %awaited, label %tell, label %leave
tell:
  call void @wake(ptr %box)
  br label %leave
leave:
  ret i1 %is_mine
}

; Where an array's elements begin: the first field after what all of Python's objects have.
define private ptr @data(ptr %array) {
  %data_at = getelementptr i8, ptr %array, i64 16
  %data = load ptr, ptr %data_at
  ret ptr %data
}

; Multiply as planned here, and in those of so many helpers that are free. There may be more where
; each gets less of a processor. The arrays are NumPy's objects. Returns 0, or the status of a gemm
; that has failed.
define i64 @share(ptr %boxes, i64 %helpers_if_quiet, i64 %helpers_if_busy, ptr %plan,
    ptr %x_object, ptr %y_object, ptr %out_object) {
start:
  %x = call ptr @data(ptr %x_object)
  %y = call ptr @data(ptr %y_object)
  %out = call ptr @data(ptr %out_object)
  %now = call i64 @llvm.readcyclecounter()
  %is_busy = call i1 @is_busy(i64 %now)
  %helpers = select i1 %is_busy, i64 %helpers_if_busy, i64 %helpers_if_quiet
  %job = alloca %job
  store %job zeroinitializer, ptr %job
  %plan_at = getelementptr %job, ptr %job, i32 0, i32 1
  store ptr %plan, ptr %plan_at
  %x_at = getelementptr %job, ptr %job, i32 0, i32 2
  store ptr %x, ptr %x_at
  %y_at = getelementptr ptr, ptr %x_at, i64 1
  store ptr %y, ptr %y_at
  %out_at = getelementptr ptr, ptr %x_at, i64 2
  store ptr %out, ptr %out_at
  %status_at = getelementptr %job, ptr %job, i32 0, i32 3
  %fourth_at = getelementptr ptr, ptr %x_at, i64 3
  store ptr %status_at, ptr %fourth_at
  %offered = ptrtoint ptr %job to i64
  %begun = or i64 %offered, 1
  %awaited = or i64 %offered, 3
  br label %offer
offer:
  %i = phi i64 [ 0, %start ], [ %i_next, %offer_next ]
  %is_one = icmp slt i64 %i, %helpers
  br i1 %is_one, label %offer_one, label %own
offer_one:
  %box = getelementptr [16 x i64], ptr %boxes, i64 %i
  %state = load atomic i64, ptr %box seq_cst, align 8
  %engaged = and i64 %state, -3
  %is_free = icmp eq i64 %engaged, 0
  br i1 %is_free, label %offer_free, label %offer_next
offer_free:
  %change = cmpxchg ptr %box, i64 %state, i64 %offered seq_cst seq_cst
  %is_put = extractvalue { i64, i1 } %change, 1
  %is_asleep = icmp eq i64 %state, 2
  %is_to_wake = and i1 %is_put, %is_asleep
  br i1 %is_to_wake, label %offer_wake, label %offer_next
offer_wake:
  call void @wake(ptr %box)
  br label %offer_next
offer_next:
  %i_next = add i64 %i, 1
  br label %offer

own:
  call void @work(ptr %job)
  br label %end
end:
  %k = phi i64 [ 0, %own ], [ %k_next, %end_next ]
  %is_another = icmp slt i64 %k, %helpers
  br i1 %is_another, label %take_back, label %leave
take_back:
  %its_box = getelementptr [16 x i64], ptr %boxes, i64 %k
  cmpxchg ptr %its_box, i64 %offered, i64 0 seq_cst seq_cst
  %since = call i64 @llvm.readcyclecounter()
  br label %await
await:
  %its_state = load atomic i64, ptr %its_box seq_cst, align 8
  %at_it = or i64 %its_state, 2
  %is_at_it = icmp eq i64 %at_it, %awaited
  br i1 %is_at_it, label %wait, label %end_next
wait:
  %goes_on = call i1 @goes_on(i64 %since)
  br i1 %goes_on, label %await, label %doze
doze:
  cmpxchg ptr %its_box, i64 %begun, i64 %awaited seq_cst seq_cst
  call void @sleep(ptr %its_box, i64 %awaited)
  br label %await
end_next:
  %k_next = add i64 %k, 1
  br label %end
leave:
  %status = load atomic i64, ptr %status_at seq_cst, align 8
  ret i64 %status
}

; Do parts of a job as long as there are any.
define private void @work(ptr %job) {
start:
  %plan_at = getelementptr %job, ptr %job, i32 0, i32 1
  %plan = load ptr, ptr %plan_at
  %count_at = getelementptr %plan, ptr %plan, i32 0, i32 10
  %count = load i64, ptr %count_at
  %first_at = getelementptr %plan, ptr %plan, i32 0, i32 11
  %first = load ptr, ptr %first_at
  br label %next
next:
  %i = atomicrmw add ptr %job, i64 1 seq_cst
  %is_left = icmp slt i64 %i, %count
  br i1 %is_left, label %begin, label %leave
begin:
  %part = getelementptr %part, ptr %first, i64 %i
  call void @batch(ptr %job, ptr %plan, ptr %part)
  br label %next
leave:
  ret void
}

; Do one part: a product for each place of its batch.
define private void @batch(ptr %job, ptr %plan, ptr %part) {
start:
  %arrays_at = getelementptr %job, ptr %job, i32 0, i32 2
  %arrays = load <4 x ptr>, ptr %arrays_at
  %offsets_at = getelementptr %part, ptr %part, i32 0, i32 0
  %offsets = load <4 x i64>, ptr %offsets_at, align 8
  %outer_steps_at = getelementptr %plan, ptr %plan, i32 0, i32 7
  %outer_steps = load <4 x i64>, ptr %outer_steps_at, align 8
  %inner_steps_at = getelementptr %plan, ptr %plan, i32 0, i32 8
  %inner_steps = load <4 x i64>, ptr %inner_steps_at, align 8
  %outer_at = getelementptr %part, ptr %part, i32 0, i32 1, i32 0
  %outer = load i64, ptr %outer_at
  %inner_at = getelementptr %part, ptr %part, i32 0, i32 1, i32 1
  %inner = load i64, ptr %inner_at
  %first = getelementptr i8, <4 x ptr> %arrays, <4 x i64> %offsets
  br label %rows
rows:
  %i = phi i64 [ 0, %start ], [ %i_next, %row_end ]
  %row = phi <4 x ptr> [ %first, %start ], [ %row_next, %row_end ]
  %is_row = icmp slt i64 %i, %outer
  br i1 %is_row, label %places, label %leave
places:
  %j = phi i64 [ 0, %rows ], [ %j_next, %place ]
  %here = phi <4 x ptr> [ %row, %rows ], [ %here_next, %place ]
  %is_place = icmp slt i64 %j, %inner
  br i1 %is_place, label %place, label %row_end
place:
  call void @multiply(ptr %plan, ptr %part, <4 x ptr> %here)
  %j_next = add i64 %j, 1
  %here_next = getelementptr i8, <4 x ptr> %here, <4 x i64> %inner_steps
  br label %places
row_end:
  %i_next = add i64 %i, 1
  %row_next = getelementptr i8, <4 x ptr> %row, <4 x i64> %outer_steps
  br label %rows
leave:
  ret void
}

; Have gemm multiply two matrices.
define private void @multiply(ptr %plan, ptr %part, <4 x ptr> %arrays) {
start:
  %x = extractelement <4 x ptr> %arrays, i32 0
  %y = extractelement <4 x ptr> %arrays, i32 1
  %out = extractelement <4 x ptr> %arrays, i32 2
  %gemm_at = getelementptr %plan, ptr %plan, i32 0, i32 0
  %gemm = load ptr, ptr %gemm_at
  %numbers_at = getelementptr %plan, ptr %plan, i32 0, i32 1
  %numbers = load i64, ptr %numbers_at
  %one_at = getelementptr %plan, ptr %plan, i32 0, i32 2
  %one = load ptr, ptr %one_at
  %zero_at = getelementptr %plan, ptr %plan, i32 0, i32 3
  %zero = load ptr, ptr %zero_at
  %x_order_at = getelementptr %plan, ptr %plan, i32 0, i32 4
  %x_order = load i32, ptr %x_order_at
  %y_order_at = getelementptr %plan, ptr %plan, i32 0, i32 5
  %y_order = load i32, ptr %y_order_at
  %x_apart_at = getelementptr %plan, ptr %plan, i32 0, i32 6, i32 0
  %x_apart = load i64, ptr %x_apart_at
  %y_apart_at = getelementptr %plan, ptr %plan, i32 0, i32 6, i32 1
  %y_apart = load i64, ptr %y_apart_at
  %out_apart_at = getelementptr %plan, ptr %plan, i32 0, i32 6, i32 2
  %out_apart = load i64, ptr %out_apart_at
  %size_at = getelementptr %plan, ptr %plan, i32 0, i32 9
  %size = load i64, ptr %size_at
  %rows_at = getelementptr %part, ptr %part, i32 0, i32 1, i32 2
  %rows = load i64, ptr %rows_at
  %columns_at = getelementptr %part, ptr %part, i32 0, i32 1, i32 3
  %columns = load i64, ptr %columns_at
  switch i64 %numbers, label %by_address [
    i64 0, label %as_float i64 1, label %as_double i64 3, label %onednns ]
onednns:
  %status = call i32 %gemm(i32 %x_order, i32 %y_order, i64 %rows, i64 %columns, i64 %size,
      float 1.0, ptr %x, i64 %x_apart, ptr %y, i64 %y_apart, float 0.0, ptr %out, i64 %out_apart)
  %is_made = icmp eq i32 %status, 0
  br i1 %is_made, label %made, label %failed
made:
  ret void
failed:
  %status_at = extractelement <4 x ptr> %arrays, i32 3
  %told = zext i32 %status to i64
  store atomic i64 %told, ptr %status_at seq_cst, align 8
  ret void
as_float:
  call void %gemm(i32 101, i32 %x_order, i32 %y_order, i64 %rows, i64 %columns, i64 %size,
      float 1.0, ptr %x, i64 %x_apart, ptr %y, i64 %y_apart, float 0.0, ptr %out, i64 %out_apart)
  ret void
as_double:
  call void %gemm(i32 101, i32 %x_order, i32 %y_order, i64 %rows, i64 %columns, i64 %size,
      double 1.0, ptr %x, i64 %x_apart, ptr %y, i64 %y_apart, double 0.0, ptr %out, i64 %out_apart)
  ret void
by_address:
  call void %gemm(i32 101, i32 %x_order, i32 %y_order, i64 %rows, i64 %columns, i64 %size,
      ptr %one, ptr %x, i64 %x_apart, ptr %y, i64 %y_apart, ptr %zero, ptr %out, i64 %out_apart)
  ret void
}
