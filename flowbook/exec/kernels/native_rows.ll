; Combine rows of an array with others, one after the other, for `native_rows.py`, which puts a type
; for NUMBER and an instruction for COMBINE. Returns how many rows it did: it ends before the first
; whose index lies outside. No array has to be aligned.
define i64 @combine(ptr noalias %buffer, i64 %rows_there, ptr noalias readonly %indices,
    ptr noalias readonly %rows, i64 %count, i64 %width) {
start:
  br label %next
next:
  %i = phi i64 [ 0, %start ], [ %i_next, %done ]
  %is_left = icmp slt i64 %i, %count
  br i1 %is_left, label %look, label %leave
look:
  %index_at = getelementptr i64, ptr %indices, i64 %i
  %index = load i64, ptr %index_at, align 1
  %is_within = icmp ult i64 %index, %rows_there
  br i1 %is_within, label %row, label %leave
row:
  %to_first = mul i64 %index, %width
  %from_first = mul i64 %i, %width
  %to = getelementptr NUMBER, ptr %buffer, i64 %to_first
  %from = getelementptr NUMBER, ptr %rows, i64 %from_first
  br label %element
element:
  %j = phi i64 [ 0, %row ], [ %j_next, %element_one ]
  %is_element = icmp slt i64 %j, %width
  br i1 %is_element, label %element_one, label %done
element_one:
  %here = getelementptr NUMBER, ptr %to, i64 %j
  %there = getelementptr NUMBER, ptr %from, i64 %j
  %x = load NUMBER, ptr %here, align 1
  %y = load NUMBER, ptr %there, align 1
  %made = COMBINE NUMBER %x, %y
  store NUMBER %made, ptr %here, align 1
  %j_next = add i64 %j, 1
  br label %element
done:
  %i_next = add i64 %i, 1
  br label %next
leave:
  ret i64 %i
}
