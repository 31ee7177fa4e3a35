"""A character model that is trained on short stretches, from state to state, and then writes."""
import argparse

import numpy as np
import tensorflow as tf
from tensorflow.contrib import rnn


class CharRNN(object):
    def __init__(self, vocab_size, batch_size, seq_length, rnn_size=16, num_layers=2,
                 grad_clip=5.0, training=True):
        cells = []
        for _ in range(num_layers):
            cell = rnn.BasicLSTMCell(rnn_size, state_is_tuple=True)
            if training:
                cell = rnn.DropoutWrapper(cell, output_keep_prob=0.95)
            cells.append(cell)
        self.cell = cell = rnn.MultiRNNCell(cells, state_is_tuple=True)

        self.input_data = tf.placeholder(tf.int32, [batch_size, seq_length])
        self.targets = tf.placeholder(tf.int32, [batch_size, seq_length])
        self.initial_state = cell.zero_state(batch_size, tf.float32)

        with tf.variable_scope('rnnlm'):
            softmax_w = tf.get_variable("softmax_w", [rnn_size, vocab_size])
            softmax_b = tf.get_variable("softmax_b", [vocab_size],
                                        initializer=tf.zeros_initializer())
            embedding = tf.get_variable("embedding", [vocab_size, rnn_size])
            inputs = tf.nn.embedding_lookup(embedding, self.input_data)

        outputs, last_state = tf.nn.dynamic_rnn(cell, inputs, initial_state=self.initial_state)
        output = tf.reshape(outputs, [-1, rnn_size])
        self.logits = tf.matmul(output, softmax_w) + softmax_b
        self.probs = tf.nn.softmax(self.logits)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
            logits=self.logits, labels=tf.reshape(self.targets, [-1]))
        with tf.name_scope('cost'):
            self.cost = tf.reduce_sum(loss) / batch_size / seq_length
        self.final_state = last_state
        self.lr = tf.Variable(0.0, trainable=False)
        self.new_lr = tf.placeholder(tf.float32, shape=[], name="new_learning_rate")
        self.lr_update = tf.assign(self.lr, self.new_lr)
        tvars = tf.trainable_variables()
        grads, _ = tf.clip_by_global_norm(tf.gradients(self.cost, tvars), grad_clip)
        with tf.name_scope('optimizer'):
            optimizer = tf.train.AdamOptimizer(self.lr)
        self.train_op = optimizer.apply_gradients(zip(grads, tvars))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--epochs', type=int, default=16)
    args, _ = parser.parse_known_args()
    text = "hello world, " * 20
    chars = sorted(set(text))
    data = np.array([chars.index(c) for c in text[:256]])
    batch_size, seq_length = 4, 8
    x = data.reshape(batch_size, -1)
    y = np.roll(data, -1).reshape(batch_size, -1)

    tf.set_random_seed(1)
    model = CharRNN(len(chars), batch_size, seq_length)
    losses = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for e in range(args.epochs):
            sess.run(model.lr_update, feed_dict={model.new_lr: 0.03 * (0.98 ** e)})
            state = sess.run(model.initial_state)
            for b in range(0, x.shape[1], seq_length):
                feed = {model.input_data: x[:, b:b + seq_length],
                        model.targets: y[:, b:b + seq_length]}
                # The state goes on from one stretch to the next.
                for i, (c, h) in enumerate(model.initial_state):
                    feed[c] = state[i].c
                    feed[h] = state[i].h
                train_loss, state, _ = sess.run(
                    [model.cost, model.final_state, model.train_op], feed)
                losses.append(train_loss)
    first, last = losses[0], losses[-1]
    print(first, last)


if __name__ == '__main__':
    main()
