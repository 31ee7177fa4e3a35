import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
x_data = rng.choice([-1.0, 1.0], [64, 5, 1])
y_data = x_data[:, 0]
tf.set_random_seed(1)
x = tf.placeholder(tf.float32, [None, 5, 1])
y = tf.placeholder(tf.float32, [None, 1])
cell = tf.nn.rnn_cell.BasicLSTMCell(8)
outputs, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
prediction = tf.contrib.layers.fully_connected(outputs[:, -1], 1, activation_fn=None)
loss = tf.losses.mean_squared_error(y, prediction)
train = tf.train.AdamOptimizer(0.03).minimize(loss)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    first = sess.run(loss, {x: x_data, y: y_data})
    for _ in range(60):
        sess.run(train, feed_dict={x: x_data, y: y_data})
    last = sess.run(loss, {x: x_data, y: y_data})
