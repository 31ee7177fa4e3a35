import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
points = rng.normal(size=[100, 3]).astype(np.float32)
targets = points.dot([[1.0], [2.0], [3.0]]).astype(np.float32)
point, target = tf.train.slice_input_producer([points, targets], seed=1)
x, y = tf.train.batch([point, target], batch_size=20)
w = tf.Variable(tf.zeros([3, 1]))
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
sess = tf.Session()
sess.run(tf.group(tf.global_variables_initializer(), tf.local_variables_initializer()))
coord = tf.train.Coordinator()
threads = tf.train.start_queue_runners(sess=sess, coord=coord)
first = sess.run(loss)
try:
    for _ in range(60):
        if coord.should_stop():
            break
        sess.run(train)
except tf.errors.OutOfRangeError:
    pass
last = sess.run(loss)
coord.request_stop()
coord.join(threads)
sess.close()
