from __future__ import absolute_import, division, print_function

import collections
import math
import random
import sys

import numpy as np
import tensorflow as tf

random.seed(0)
text = ("a quick brown fox runs over the lazy dogs while one small cat sleeps under my old tree " * 20).split()
vocabulary_size = 19


def build_dataset(words, n_words):
    """Process raw inputs into a dataset."""
    count = [['UNK', -1]]
    count.extend(collections.Counter(words).most_common(n_words - 1))
    dictionary = dict()
    for word, _ in count:
        dictionary[word] = len(dictionary)
    data = [dictionary.get(word, 0) for word in words]
    return data, count, dictionary, dict(zip(dictionary.values(), dictionary.keys()))


data, count, dictionary, reverse_dictionary = build_dataset(text, vocabulary_size)
data_index = 0


def generate_batch(batch_size):
    global data_index
    batch = np.ndarray(shape=(batch_size), dtype=np.int32)
    labels = np.ndarray(shape=(batch_size, 1), dtype=np.int32)
    for i in range(batch_size):
        batch[i] = data[data_index % len(data)]
        labels[i, 0] = data[(data_index + 1) % len(data)]
        data_index += 1
    return batch, labels


batch_size = 32
embedding_size = 16
num_sampled = 8
valid_examples = np.arange(1, 5)
log_dir = None

graph = tf.Graph()
with graph.as_default():
    tf.set_random_seed(2)
    # Input data.
    with tf.name_scope('inputs'):
        train_inputs = tf.placeholder(tf.int32, shape=[batch_size])
        train_labels = tf.placeholder(tf.int32, shape=[batch_size, 1])
        valid_dataset = tf.constant(valid_examples, dtype=tf.int32)

    with tf.device('/cpu:0'):
        with tf.name_scope('embeddings'):
            embeddings = tf.Variable(
                tf.random_uniform([vocabulary_size, embedding_size], -1.0, 1.0))
            embed = tf.nn.embedding_lookup(embeddings, train_inputs)
        with tf.name_scope('weights'):
            nce_weights = tf.Variable(
                tf.truncated_normal([vocabulary_size, embedding_size],
                                    stddev=1.0 / math.sqrt(embedding_size)))
        with tf.name_scope('biases'):
            nce_biases = tf.Variable(tf.zeros([vocabulary_size]))

    with tf.name_scope('loss'):
        loss = tf.reduce_mean(
            tf.nn.nce_loss(nce_weights, nce_biases, train_labels, embed, num_sampled,
                           vocabulary_size))
    tf.summary.scalar('loss', loss)

    with tf.name_scope('optimizer'):
        rate = tf.train.exponential_decay(1.0, tf.Variable(0, trainable=False), 1000, 0.96,
                                          staircase=True)
        optimizer = tf.train.GradientDescentOptimizer(rate).minimize(loss)

    # Compute the cosine similarity between minibatch examples and all embeddings.
    norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keep_dims=True))
    normalized_embeddings = embeddings / norm
    valid_embeddings = tf.nn.embedding_lookup(normalized_embeddings, valid_dataset)
    similarity = tf.matmul(valid_embeddings, normalized_embeddings, transpose_b=True)
    init = tf.global_variables_initializer()
    saver = tf.train.Saver({"embeddings": embeddings})

with tf.Session(graph=graph) as session:
    init.run()
    print('Initialized', file=sys.stderr)
    average_loss, first = 0, None
    for step in xrange(201) if sys.version_info[0] < 3 else range(201):
        batch_inputs, batch_labels = generate_batch(batch_size)
        feed_dict = {train_inputs: batch_inputs, train_labels: batch_labels}
        _, loss_val = session.run([optimizer, loss], feed_dict=feed_dict)
        average_loss += loss_val
        if step % 20 == 0 and step > 0:
            average_loss /= 20
            first = first or average_loss
            last = average_loss
            average_loss = 0
    sim = similarity.eval()
    nearest = (-sim[0, :]).argsort()[1:3]
    assert nearest.shape == (2,)
    final_embeddings = normalized_embeddings.eval()
