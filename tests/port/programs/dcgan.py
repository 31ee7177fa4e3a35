import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_integer("batch_size", 16, "The size of batch images [16]")
flags.DEFINE_integer("steps", 40, "Steps to train [40]")
flags.DEFINE_float("learning_rate", 0.004, "Learning rate for adam")
flags.DEFINE_float("beta1", 0.5, "Momentum term of adam")
FLAGS = flags.FLAGS


class batch_norm(object):
    def __init__(self, epsilon=1e-5, momentum=0.9, name="batch_norm"):
        with tf.variable_scope(name):
            self.epsilon = epsilon
            self.momentum = momentum
            self.name = name

    def __call__(self, x, train=True):
        return tf.contrib.layers.batch_norm(x, decay=self.momentum, updates_collections=None,
                                            epsilon=self.epsilon, scale=True, is_training=train,
                                            scope=self.name)


def conv2d(input_, output_dim, k_h=3, k_w=3, d_h=2, d_w=2, stddev=0.1, name="conv2d"):
    with tf.variable_scope(name):
        w = tf.get_variable('w', [k_h, k_w, input_.get_shape()[-1], output_dim],
                            initializer=tf.truncated_normal_initializer(stddev=stddev))
        conv = tf.nn.conv2d(input_, w, strides=[1, d_h, d_w, 1], padding='SAME')
        biases = tf.get_variable('biases', [output_dim], initializer=tf.constant_initializer(0.0))
        return tf.reshape(tf.nn.bias_add(conv, biases), tf.shape(conv))


def deconv2d(input_, output_shape, k_h=3, k_w=3, d_h=2, d_w=2, stddev=0.1, name="deconv2d"):
    with tf.variable_scope(name):
        # filter : [height, width, output_channels, in_channels]
        w = tf.get_variable('w', [k_h, k_w, output_shape[-1], input_.get_shape()[-1]],
                            initializer=tf.random_normal_initializer(stddev=stddev))
        deconv = tf.nn.conv2d_transpose(input_, w, output_shape=output_shape,
                                        strides=[1, d_h, d_w, 1])
        biases = tf.get_variable('biases', [output_shape[-1]],
                                 initializer=tf.constant_initializer(0.0))
        return tf.reshape(tf.nn.bias_add(deconv, biases), deconv.get_shape())


def lrelu(x, leak=0.2, name="lrelu"):
    return tf.maximum(x, leak * x)


def linear(input_, output_size, scope=None, stddev=0.1, bias_start=0.0):
    shape = input_.get_shape().as_list()
    with tf.variable_scope(scope or "Linear"):
        matrix = tf.get_variable("Matrix", [shape[1], output_size], tf.float32,
                                 tf.random_normal_initializer(stddev=stddev))
        bias = tf.get_variable("bias", [output_size],
                               initializer=tf.constant_initializer(bias_start))
        return tf.matmul(input_, matrix) + bias


class DCGAN(object):
    def __init__(self, batch_size=16, z_dim=8):
        self.batch_size = batch_size
        self.z_dim = z_dim
        self.d_bn1 = batch_norm(name='d_bn1')
        self.g_bn0 = batch_norm(name='g_bn0')
        self.build_model()

    def build_model(self):
        self.inputs = tf.placeholder(tf.float32, [self.batch_size, 8, 8, 1], name='real_images')
        self.z = tf.placeholder(tf.float32, [None, self.z_dim], name='z')
        self.z_sum = tf.summary.histogram("z", self.z)
        self.G = self.generator(self.z)
        self.D, self.D_logits = self.discriminator(self.inputs)
        self.D_, self.D_logits_ = self.discriminator(self.G, reuse=True)
        ce = tf.nn.sigmoid_cross_entropy_with_logits
        self.d_loss_real = tf.reduce_mean(
            ce(logits=self.D_logits, labels=tf.ones_like(self.D)))
        self.d_loss_fake = tf.reduce_mean(
            ce(logits=self.D_logits_, labels=tf.zeros_like(self.D_)))
        self.g_loss = tf.reduce_mean(ce(logits=self.D_logits_, labels=tf.ones_like(self.D_)))
        self.d_loss = self.d_loss_real + self.d_loss_fake
        t_vars = tf.trainable_variables()
        self.d_vars = [var for var in t_vars if 'discriminator' in var.name]
        self.g_vars = [var for var in t_vars if 'generator' in var.name]

    def discriminator(self, image, reuse=False):
        with tf.variable_scope("discriminator") as scope:
            if reuse:
                scope.reuse_variables()
            h0 = lrelu(conv2d(image, 8, name='d_h0_conv'))
            h1 = lrelu(self.d_bn1(conv2d(h0, 16, name='d_h1_conv')))
            h2 = linear(tf.reshape(h1, [self.batch_size, -1]), 1, 'd_h2_lin')
            return tf.nn.sigmoid(h2), h2

    def generator(self, z):
        with tf.variable_scope("generator") as scope:
            h0 = tf.reshape(linear(z, 2 * 2 * 16, 'g_h0_lin'), [-1, 2, 2, 16])
            h0 = tf.nn.relu(self.g_bn0(h0))
            h1 = tf.nn.relu(deconv2d(h0, [self.batch_size, 4, 4, 8], name='g_h1'))
            h2 = deconv2d(h1, [self.batch_size, 8, 8, 1], name='g_h2')
            return tf.nn.tanh(h2)

    def train(self, config):
        d_optim = tf.train.AdamOptimizer(config.learning_rate, beta1=config.beta1) \
            .minimize(self.d_loss, var_list=self.d_vars)
        g_optim = tf.train.AdamOptimizer(config.learning_rate, beta1=config.beta1) \
            .minimize(self.g_loss, var_list=self.g_vars)
        rng = np.random.RandomState(0)
        # Bright above, dark below.
        picture = np.where(np.arange(8)[:, None] < 4, 0.8, -0.8) * np.ones((8, 8))
        data = picture[None, :, :, None] + rng.normal(0, 0.05, [self.batch_size, 8, 8, 1])
        run_config = tf.ConfigProto()
        run_config.gpu_options.allow_growth = True
        with tf.Session(config=run_config) as sess:
            try:
                tf.global_variables_initializer().run()
            except Exception:
                tf.initialize_all_variables().run()
            errors = []
            for step in range(config.steps):
                batch_z = rng.uniform(-1, 1, [self.batch_size, self.z_dim]).astype(np.float32)
                sess.run(d_optim, feed_dict={self.inputs: data, self.z: batch_z})
                # Twice, so that the discriminator does not win.
                sess.run(g_optim, feed_dict={self.z: batch_z})
                sess.run(g_optim, feed_dict={self.z: batch_z})
                errD_fake = self.d_loss_fake.eval({self.z: batch_z})
                errD_real = self.d_loss_real.eval({self.inputs: data})
                assert np.isfinite(errD_fake + errD_real)
                fake = sess.run(self.G, feed_dict={self.z: batch_z})
                errors.append(np.abs(fake.mean(0)[:, :, 0] - picture).mean())
        return errors[0], min(errors)


def main(_):
    tf.set_random_seed(3)
    assert FLAGS.batch_size == 16
    dcgan = DCGAN(FLAGS.batch_size)
    first, last = dcgan.train(FLAGS)
    print(first, last)


if __name__ == '__main__':
    tf.app.run()
