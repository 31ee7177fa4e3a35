"""DCGAN as of 2016."""
import tempfile

import numpy as np
import tensorflow as tf


class batch_norm(object):
    """Code modification of http://stackoverflow.com/a/33950177"""
    def __init__(self, epsilon=1e-5, momentum=0.9, name="batch_norm"):
        with tf.variable_scope(name):
            self.epsilon = epsilon
            self.momentum = momentum
            self.ema = tf.train.ExponentialMovingAverage(decay=self.momentum)
            self.name = name

    def __call__(self, x, train=True):
        shape = x.get_shape().as_list()
        with tf.variable_scope(self.name) as scope:
            self.beta = tf.get_variable("beta", [shape[-1]],
                                        initializer=tf.constant_initializer(0.))
            self.gamma = tf.get_variable("gamma", [shape[-1]],
                                         initializer=tf.random_normal_initializer(1., 0.02))
            batch_mean, batch_var = tf.nn.moments(x, range(len(shape) - 1), name='moments')
            return tf.nn.batch_norm_with_global_normalization(
                x, batch_mean, batch_var, self.beta, self.gamma, self.epsilon,
                scale_after_normalization=True)


def binary_cross_entropy(preds, targets, name=None):
    eps = 1e-12
    with tf.op_scope([preds, targets], name, "bce_loss") as name:
        preds = tf.convert_to_tensor(preds, name="preds")
        targets = tf.convert_to_tensor(targets, name="targets")
        return tf.reduce_mean(-(targets * tf.log(preds + eps) +
                              (1. - targets) * tf.log(1. - preds + eps)))


def conv_cond_concat(x, y):
    x_shapes = x.get_shape()
    y_shapes = y.get_shape()
    return tf.concat(3, [x, y * tf.ones([x_shapes[0], x_shapes[1], x_shapes[2], y_shapes[3]])])


def conv2d(input_, output_dim, k_h=3, k_w=3, d_h=2, d_w=2, stddev=0.1, name="conv2d"):
    with tf.variable_scope(name):
        w = tf.get_variable('w', [k_h, k_w, input_.get_shape()[-1], output_dim],
                            initializer=tf.truncated_normal_initializer(stddev=stddev))
        conv = tf.nn.conv2d(input_, w, strides=[1, d_h, d_w, 1], padding='SAME')
        biases = tf.get_variable('biases', [output_dim], initializer=tf.constant_initializer(0.0))
        conv = tf.reshape(tf.nn.bias_add(conv, biases), conv.get_shape())
        return conv


def deconv2d(input_, output_shape, k_h=3, k_w=3, d_h=2, d_w=2, stddev=0.1, name="deconv2d",
             with_w=False):
    with tf.variable_scope(name):
        w = tf.get_variable('w', [k_h, k_h, output_shape[-1], input_.get_shape()[-1]],
                            initializer=tf.random_normal_initializer(stddev=stddev))
        try:
            deconv = tf.nn.conv2d_transpose(input_, w, output_shape=output_shape,
                                            strides=[1, d_h, d_w, 1])
        # Support for versions of TensorFlow before 0.7.0
        except AttributeError:
            deconv = tf.nn.deconv2d(input_, w, output_shape=output_shape, strides=[1, d_h, d_w, 1])
        biases = tf.get_variable('biases', [output_shape[-1]],
                                 initializer=tf.constant_initializer(0.0))
        deconv = tf.reshape(tf.nn.bias_add(deconv, biases), deconv.get_shape())
        if with_w:
            return deconv, w, biases
        else:
            return deconv


def lrelu(x, leak=0.2, name="lrelu"):
    with tf.variable_scope(name):
        f1 = 0.5 * (1 + leak)
        f2 = 0.5 * (1 - leak)
        return f1 * x + f2 * tf.abs(x)


def linear(input_, output_size, scope=None, stddev=0.1, bias_start=0.0, with_w=False):
    shape = input_.get_shape().as_list()
    with tf.variable_scope(scope or "Linear"):
        matrix = tf.get_variable("Matrix", [shape[1], output_size], tf.float32,
                                 tf.random_normal_initializer(stddev=stddev))
        bias = tf.get_variable("bias", [output_size],
                               initializer=tf.constant_initializer(bias_start))
        return tf.matmul(input_, matrix) + bias


class DCGAN(object):
    def __init__(self, sess, batch_size=16, z_dim=8):
        self.sess = sess
        self.batch_size = batch_size
        self.z_dim = z_dim
        self.d_bn1 = batch_norm(name='d_bn1')
        self.g_bn0 = batch_norm(name='g_bn0')
        self.build_model()

    def build_model(self):
        self.images = tf.placeholder(tf.float32, [self.batch_size] + [8, 8, 1], name='real_images')
        self.z = tf.placeholder(tf.float32, [self.batch_size, self.z_dim], name='z')
        self.z_sum = tf.histogram_summary("z", self.z)
        self.G = self.generator(self.z)
        self.D = self.discriminator(self.images)
        self.sampler = self.sampler(self.z)
        self.D_ = self.discriminator(self.G, reuse=True)
        self.d_sum = tf.histogram_summary("d", self.D)
        self.d__sum = tf.histogram_summary("d_", self.D_)
        self.G_sum = tf.image_summary("G", self.G)
        self.d_loss_real = binary_cross_entropy(self.D, tf.ones_like(self.D))
        self.d_loss_fake = binary_cross_entropy(self.D_, tf.zeros_like(self.D_))
        self.g_loss = binary_cross_entropy(self.D_, tf.ones_like(self.D_))
        self.d_loss_real_sum = tf.scalar_summary("d_loss_real", self.d_loss_real)
        self.d_loss = self.d_loss_real + self.d_loss_fake
        self.g_loss_sum = tf.scalar_summary("g_loss", self.g_loss)
        self.d_loss_sum = tf.scalar_summary("d_loss", self.d_loss)
        t_vars = tf.trainable_variables()
        self.d_vars = [var for var in t_vars if 'd_' in var.name]
        self.g_vars = [var for var in t_vars if 'g_' in var.name]
        self.saver = tf.train.Saver()

    def train(self, steps):
        d_optim = tf.train.AdamOptimizer(0.004, beta1=0.5) \
                          .minimize(self.d_loss, var_list=self.d_vars)
        g_optim = tf.train.AdamOptimizer(0.004, beta1=0.5) \
                          .minimize(self.g_loss, var_list=self.g_vars)
        tf.initialize_all_variables().run()
        self.g_sum = tf.merge_summary([self.z_sum, self.d__sum, self.G_sum, self.g_loss_sum])
        self.d_sum = tf.merge_summary([self.z_sum, self.d_sum, self.d_loss_real_sum])
        self.writer = tf.train.SummaryWriter(tempfile.mkdtemp(), self.sess.graph_def)
        rng = np.random.RandomState(0)
        picture = np.where(np.arange(8)[:, None] < 4, 0.8, -0.8) * np.ones((8, 8))
        data = picture[None, :, :, None] + rng.normal(0, 0.05, [self.batch_size, 8, 8, 1])
        errors = []
        for counter in range(steps):
            batch_z = np.random.uniform(-1, 1, [self.batch_size, self.z_dim]).astype(np.float32)
            _, summary_str = self.sess.run([d_optim, self.d_sum],
                                           feed_dict={self.images: data, self.z: batch_z})
            self.writer.add_summary(summary_str, counter)
            for _ in range(2):
                _, summary_str = self.sess.run([g_optim, self.g_sum], feed_dict={self.z: batch_z})
                self.writer.add_summary(summary_str, counter)
            errD_fake = self.d_loss_fake.eval({self.z: batch_z})
            errD_real = self.d_loss_real.eval({self.images: data})
            errG = self.g_loss.eval({self.z: batch_z})
            sample = self.sess.run(self.G, feed_dict={self.z: batch_z})
            errors.append(np.abs(sample.mean(0)[:, :, 0] - picture).mean())
        return errors[0], min(errors)

    def discriminator(self, image, reuse=False):
        if reuse:
            tf.get_variable_scope().reuse_variables()
        h0 = lrelu(conv2d(image, 8, name='d_h0_conv'))
        h1 = lrelu(self.d_bn1(conv2d(h0, 16, name='d_h1_conv')))
        h2 = linear(tf.reshape(h1, [self.batch_size, -1]), 1, 'd_h2_lin')
        return tf.nn.sigmoid(h2)

    def generator(self, z):
        self.z_, self.h0_w, self.h0_b = None, None, None
        h0 = tf.nn.relu(self.g_bn0(tf.reshape(linear(z, 2 * 2 * 16, 'g_h0_lin'), [-1, 2, 2, 16])))
        h1 = tf.nn.relu(deconv2d(h0, [self.batch_size, 4, 4, 8], name='g_h1'))
        h2 = deconv2d(h1, [self.batch_size, 8, 8, 1], name='g_h2')
        return tf.nn.tanh(h2)

    def sampler(self, z):
        tf.get_variable_scope().reuse_variables()
        h0 = tf.nn.relu(self.g_bn0(tf.reshape(linear(z, 2 * 2 * 16, 'g_h0_lin'), [-1, 2, 2, 16]),
                                   train=False))
        h1 = tf.nn.relu(deconv2d(h0, [self.batch_size, 4, 4, 8], name='g_h1'))
        h2 = deconv2d(h1, [self.batch_size, 8, 8, 1], name='g_h2')
        return tf.nn.tanh(h2)


def main(_):
    tf.set_random_seed(3)
    np.random.seed(0)
    with tf.Session(config=tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True))) as sess:
        dcgan = DCGAN(sess)
        first, last = dcgan.train(40)
    print(first, last)


if __name__ == '__main__':
    tf.app.run()
