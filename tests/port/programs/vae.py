import numpy as np
import tensorflow as tf


def decoder(z):
    with tf.variable_scope("dec", reuse=tf.AUTO_REUSE):
        h = tf.layers.dense(z, 16, activation=tf.nn.tanh, name="h")
        return tf.layers.dense(h, 6, name="out")


rng = np.random.RandomState(0)
data = rng.normal(size=[64, 2]).dot(rng.normal(size=[2, 6]))
tf.set_random_seed(1)
x = tf.placeholder(tf.float32, [None, 6])
mu = tf.layers.dense(x, 2)
logvar = tf.layers.dense(x, 2)
z = mu + tf.random_normal(tf.shape(mu), seed=3) * tf.exp(0.5 * logvar)
reconstruction = decoder(z)
sample = decoder(tf.random_normal([5, 2]))
error = tf.reduce_sum(tf.squared_difference(x, reconstruction), reduction_indices=[1])
kl = -0.5 * tf.reduce_sum(1 + logvar - tf.square(mu) - tf.exp(logvar), 1)
loss = tf.reduce_mean(error + 0.1 * kl)
train = tf.train.AdamOptimizer(0.02).minimize(loss)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    first = sess.run(loss, feed_dict={x: data})
    for _ in range(100):
        sess.run(train, feed_dict={x: data})
    last = sess.run(loss, feed_dict={x: data})
    assert sess.run(sample).shape == (5, 6)
    assert len(tf.trainable_variables()) == 8
