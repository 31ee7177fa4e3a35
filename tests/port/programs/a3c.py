import threading

import numpy as np
import tensorflow as tf
import tensorflow.contrib.slim as slim


# Copies one set of variables to another.
def update_target_graph(from_scope, to_scope):
    from_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, from_scope)
    to_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, to_scope)
    op_holder = []
    for from_var, to_var in zip(from_vars, to_vars):
        op_holder.append(to_var.assign(from_var))
    return op_holder


class AC_Network():
    def __init__(self, s_size, a_size, scope, trainer):
        with tf.variable_scope(scope):
            self.inputs = tf.placeholder(shape=[None, s_size], dtype=tf.float32)
            hidden = slim.fully_connected(self.inputs, 16, activation_fn=tf.nn.elu)
            self.policy = slim.fully_connected(
                hidden, a_size, activation_fn=tf.nn.softmax, biases_initializer=None)
            self.value = slim.fully_connected(
                hidden, 1, activation_fn=None, biases_initializer=None)

            # Only the worker network needs ops for loss functions and gradient updating.
            if scope != 'global':
                self.actions = tf.placeholder(shape=[None], dtype=tf.int32)
                self.actions_onehot = tf.one_hot(self.actions, a_size, dtype=tf.float32)
                self.target_v = tf.placeholder(shape=[None], dtype=tf.float32)
                self.advantages = tf.placeholder(shape=[None], dtype=tf.float32)
                self.responsible = tf.reduce_sum(self.policy * self.actions_onehot, [1])

                self.value_loss = 0.5 * tf.reduce_sum(
                    tf.square(self.target_v - tf.reshape(self.value, [-1])))
                self.entropy = -tf.reduce_sum(self.policy * tf.log(self.policy))
                self.policy_loss = -tf.reduce_sum(tf.log(self.responsible) * self.advantages)
                self.loss = 0.5 * self.value_loss + self.policy_loss - self.entropy * 0.01

                local_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope)
                self.gradients = tf.gradients(self.loss, local_vars)
                grads, self.grad_norms = tf.clip_by_global_norm(self.gradients, 40.0)
                global_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, 'global')
                self.apply_grads = trainer.apply_gradients(zip(grads, global_vars))


class Worker():
    def __init__(self, name, trainer, global_episodes):
        self.name = "worker_" + str(name)
        self.rng = np.random.RandomState(name)
        self.global_episodes = global_episodes
        self.increment = self.global_episodes.assign_add(1)
        self.local_AC = AC_Network(3, 3, self.name, trainer)
        self.update_local_ops = update_target_graph('global', self.name)

    def work(self, sess, coord, episodes):
        with sess.as_default(), sess.graph.as_default():
            while not coord.should_stop():
                sess.run(self.update_local_ops)
                # The right action is the place of the one in the state.
                places = self.rng.randint(0, 3, 16)
                states = np.eye(3)[places]
                dist, v = sess.run([self.local_AC.policy, self.local_AC.value],
                                   feed_dict={self.local_AC.inputs: states})
                actions = np.array([self.rng.choice(3, p=p / p.sum()) for p in dist])
                rewards = (actions == places).astype(np.float32)
                feed_dict = {self.local_AC.target_v: rewards,
                             self.local_AC.inputs: states,
                             self.local_AC.actions: actions,
                             self.local_AC.advantages: rewards - v[:, 0]}
                sess.run([self.local_AC.value_loss, self.local_AC.apply_grads],
                         feed_dict=feed_dict)
                if sess.run(self.increment) >= episodes:
                    coord.request_stop()


tf.reset_default_graph()
tf.set_random_seed(0)
with tf.device("/cpu:0"):
    global_episodes = tf.Variable(0, dtype=tf.int32, name='global_episodes', trainable=False)
    trainer = tf.train.AdamOptimizer(learning_rate=1e-2)
    master_network = AC_Network(3, 3, 'global', None)
    workers = [Worker(i, trainer, global_episodes) for i in range(2)]
    saver = tf.train.Saver(max_to_keep=5)

with tf.Session() as sess:
    coord = tf.train.Coordinator()
    sess.run(tf.global_variables_initializer())

    def wrong():
        policy = sess.run(master_network.policy, feed_dict={master_network.inputs: np.eye(3)})
        return 1 - np.diag(policy).mean()

    first = wrong()
    worker_threads = []
    for worker in workers:
        worker_work = lambda worker=worker: worker.work(sess, coord, 240)
        t = threading.Thread(target=(worker_work))
        t.start()
        worker_threads.append(t)
    coord.join(worker_threads)
    last = wrong()
