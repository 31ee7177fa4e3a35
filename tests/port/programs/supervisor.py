"""Softmax regression that a Supervisor runs."""

import tempfile

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("train_dir", None, "Where to write checkpoints and events")
flags.DEFINE_integer("max_steps", 60, "How many steps to take")
flags.DEFINE_float("learning_rate", 0.5, "Initial learning rate")
FLAGS = flags.FLAGS


def data():
    rng = np.random.RandomState(0)
    centers = rng.normal(size=[10, 16])
    labels = rng.randint(0, 10, 200)
    return centers[labels] + rng.normal(0, 0.3, [200, 16]), np.eye(10)[labels]


def main(_):
    train_dir = FLAGS.train_dir or tempfile.mkdtemp()
    images, labels = data()
    with tf.Graph().as_default():
        global_step = tf.Variable(0, name='global_step', trainable=False)
        x = tf.placeholder(tf.float32, [None, 16])
        y_ = tf.placeholder(tf.float32, [None, 10])
        W = tf.Variable(tf.zeros([16, 10]))
        b = tf.Variable(tf.zeros([10]))
        y = tf.nn.softmax(tf.matmul(x, W) + b)
        cross_entropy = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))
        train_step = tf.train.GradientDescentOptimizer(FLAGS.learning_rate).minimize(
            cross_entropy, global_step=global_step)
        tf.scalar_summary('cross entropy', cross_entropy)
        correct = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
        accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
        summary_op = tf.merge_all_summaries()
        init_op = tf.initialize_all_variables()
        saver = tf.train.Saver()

        # The supervisor takes care of checkpoints.
        sv = tf.train.Supervisor(logdir=train_dir,
                                 init_op=init_op,
                                 summary_op=None,
                                 saver=saver,
                                 global_step=global_step,
                                 save_model_secs=600)
        losses = []
        with sv.managed_session() as sess:
            for step in range(FLAGS.max_steps):
                if sv.should_stop():
                    break
                feed = {x: images, y_: labels}
                _, loss = sess.run([train_step, cross_entropy], feed_dict=feed)
                losses.append(loss)
                if step % 10 == 0:
                    sv.summary_computed(sess, sess.run(summary_op, feed_dict=feed))
            assert sess.run(accuracy, feed_dict=feed) > 0.9
        sv.stop()
    first, last = losses[0], losses[-1]
    print(first, last)


if __name__ == '__main__':
    tf.app.run()
