"""A network of one hidden layer, with flags."""
import numpy as np
import tensorflow as tf  # The first line that changes.

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_integer("steps", 120, "Number of steps.")
flags.DEFINE_float("rate", 0.5, "Learning rate.")
flags.DEFINE_boolean("verbose", False, "Whether to say more.")


def main(_):
    rng = np.random.RandomState(0)
    data = rng.uniform(-1, 1, [200, 2])
    labels = (data[:, 0] > data[:, 1]).astype(np.int32)

    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, [None, 2])
    y = tf.placeholder(tf.int32, [None])
    W1 = tf.Variable(tf.truncated_normal([2, 8], stddev=0.5))
    b1 = tf.Variable(tf.zeros([8]))
    hidden = tf.nn.sigmoid(tf.matmul(x, W1) + b1)   # as in the book
    W2 = tf.Variable(tf.truncated_normal([int(hidden.get_shape()[1]), 2], stddev=0.5))
    logits = tf.matmul(hidden, W2)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_mean(losses, reduction_indices=0)
    accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.to_int32(tf.argmax(logits, dimension=1)), y)))
    train = tf.train.GradientDescentOptimizer(FLAGS.rate).minimize(loss)
    init = tf.initialize_all_variables()
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(init)
        feed = {x: data, y: labels}
        first = sess.run(loss, feed_dict=feed)
        for step in range(FLAGS.steps):
            sess.run(train, feed_dict=feed)
        last = loss.eval(feed_dict=feed)
        assert accuracy.eval(feed) > 0.7
    print(first, last)


if __name__ == "__main__":
    tf.app.run()
