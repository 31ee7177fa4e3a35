import os
import tempfile

import tensorflow as tf

folder = tempfile.mkdtemp()
w = tf.Variable(5.0, name="w")
loss = tf.square(w)
tf.summary.scalar("loss", loss)
global_step = tf.train.get_or_create_global_step()
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=global_step)
halve = w.assign(w / 2)
saver = tf.train.Saver(max_to_keep=2)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    first = sess.run(loss)
    for _ in range(10):
        sess.run(train)
    saver.save(sess, os.path.join(folder, "model"), global_step=global_step)
with tf.Session() as sess:
    saver.restore(sess, tf.train.latest_checkpoint(folder))
    sess.run(halve)
    last = sess.run(loss)
