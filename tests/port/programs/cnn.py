import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()  # TensorFlow 2 is installed.
tf.set_random_seed(1)
rng = np.random.RandomState(0)
labels = rng.randint(0, 2, 32)
images = rng.normal(0, 0.1, [32, 8, 8, 1])
images[labels == 1, :, 3] += 1
images[labels == 0, 3, :] += 1

x = tf.placeholder(tf.float32, [None, 8, 8, 1])
y = tf.placeholder(tf.int64, [None])
keep_prob = tf.placeholder(tf.float32)


def weight_variable(name, shape):
    return tf.get_variable(name, shape, initializer=tf.truncated_normal_initializer(stddev=0.1))


with tf.variable_scope("conv1"):
    W = weight_variable("W", [3, 3, 1, 4])
    b = tf.get_variable("b", [4], initializer=tf.constant_initializer(0.1))
    h = tf.nn.relu(tf.nn.conv2d(x, W, strides=[1, 1, 1, 1], padding="SAME") + b)
    h = tf.nn.max_pool(h, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
shape = h.get_shape().as_list()
flat = tf.reshape(h, [-1, shape[1] * shape[2] * shape[3]])
flat = tf.nn.dropout(flat, keep_prob)
logits = tf.layers.dense(flat, 2)
loss = tf.reduce_mean(
    tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.one_hot(y, 2), logits=logits))
train_step = tf.train.AdamOptimizer(1e-2).minimize(loss)
sess = tf.InteractiveSession()
tf.global_variables_initializer().run()
feed = {x: images, y: labels, keep_prob: 1.0}
first = loss.eval(feed_dict=feed)
for i in range(30):
    train_step.run(feed_dict={x: images, y: labels, keep_prob: 0.9})
last = loss.eval(feed_dict=feed)
