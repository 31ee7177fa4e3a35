"""Control flow, contrib and names that moved."""
import numpy as np
import tensorflow as tf

x = tf.constant(np.linspace(-1, 1, 50), dtype=tf.float32)
y = tf.add(tf.mul(3.0, x), 1.0)
slope = tf.get_variable("slope", initializer=tf.constant(0.0))
offset = tf.get_variable("offset", shape=[], initializer=tf.zeros_initializer())
error = tf.sub(slope * x + offset, y)
loss = tf.cond(tf.reduce_any(tf.is_nan(error)), lambda: tf.constant(0.0),
               lambda: tf.reduce_mean(tf.square(error)))
doubled = tf.while_loop(lambda i: tf.less(i, 8), lambda i: i * 2, [tf.constant(1)])
grads = tf.gradients(loss, [slope, offset])
train = tf.group(slope.assign_sub(0.3 * grads[0]), offset.assign_sub(0.3 * grads[1]))
packed = tf.pack([slope, offset])
assert packed.get_shape().as_list() == [2]
with tf.Session() as sess:
    tf.global_variables_initializer().run()
    assert sess.run(doubled) == 8
    first = sess.run(loss)
    for _ in range(40):
        train.run()
    last = sess.run(loss)
    print(packed.eval())
