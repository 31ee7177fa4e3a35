import math

import numpy as np
import tensorflow as tf

size, width, batch = 20, 8, 64
rng = np.random.RandomState(0)
words = rng.randint(0, size, batch)
contexts = ((words + 1) % size).reshape(batch, 1)
graph = tf.Graph()
with graph.as_default():
    tf.set_random_seed(4)
    train_inputs = tf.placeholder(tf.int32, shape=[batch])
    train_labels = tf.placeholder(tf.int32, shape=[batch, 1])
    embeddings = tf.Variable(tf.random_uniform([size, width], -1.0, 1.0))
    embed = tf.nn.embedding_lookup(embeddings, train_inputs)
    nce_weights = tf.Variable(tf.truncated_normal([size, width], stddev=1.0 / math.sqrt(width)))
    nce_biases = tf.Variable(tf.zeros([size]))
    loss = tf.reduce_mean(
        tf.nn.nce_loss(weights=nce_weights, biases=nce_biases, labels=train_labels,
                       inputs=embed, num_sampled=8, num_classes=size))
    optimizer = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keep_dims=True))
    normalized = embeddings / norm
with tf.Session(graph=graph) as session:
    tf_feed = {train_inputs: words, train_labels: contexts}
    tf_init = tf.global_variables_initializer()
    session.run(tf_init)
    first = np.mean([session.run(loss, feed_dict=tf_feed) for _ in range(10)])
    for step in range(100):
        session.run([optimizer, loss], feed_dict=tf_feed)
    last = np.mean([session.run(loss, feed_dict=tf_feed) for _ in range(10)])
    assert np.allclose(np.linalg.norm(normalized.eval(), axis=1), 1, atol=1e-4)
