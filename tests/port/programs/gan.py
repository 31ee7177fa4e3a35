import numpy as np
import tensorflow as tf

tf.set_random_seed(2)


def generator(z):
    with tf.variable_scope("G"):
        h = tf.layers.dense(z, 8, tf.nn.relu)
        return tf.layers.dense(h, 2)


def discriminator(x, reuse=None):
    """Says how real points are."""
    with tf.variable_scope("discriminator", reuse=reuse):
        # Two layers are enough.
        W = tf.get_variable("W", [2, 16], tf.float32, tf.contrib.layers.xavier_initializer())
        h = tf.nn.leaky_relu(tf.matmul(x, W))
        return tf.layers.dense(h, 1, name="out")


real = tf.placeholder(tf.float32, [None, 2])
z = tf.random_normal([64, 4])
fake = generator(z)
D_real = discriminator(real)
D_fake = discriminator(fake, reuse=True)  # The same variables.
ce = tf.nn.sigmoid_cross_entropy_with_logits
d_loss = tf.reduce_mean(ce(logits=D_real, labels=tf.ones_like(D_real))) + tf.reduce_mean(
    ce(logits=D_fake, labels=tf.zeros_like(D_fake)))
g_loss = tf.reduce_mean(ce(logits=D_fake, labels=tf.ones_like(D_fake)))
t_vars = tf.trainable_variables()
d_vars = [var for var in t_vars if var.name.startswith("discriminator")]
g_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="G")
assert (len(d_vars), len(g_vars)) == (3, 4)
d_train = tf.train.AdamOptimizer(0.02, beta1=0.5).minimize(d_loss, var_list=d_vars)
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    g_train = tf.train.AdamOptimizer(0.02, beta1=0.5).minimize(g_loss, var_list=g_vars)
target = np.array([2.0, -1.0])
data = np.random.RandomState(0).normal(target, 0.1, [64, 2])
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    first = np.abs(sess.run(fake).mean(0) - target).max()
    for _ in range(150):
        sess.run(d_train, feed_dict={real: data})
        sess.run(g_train)
    last = np.abs(sess.run(fake).mean(0) - target).max()
