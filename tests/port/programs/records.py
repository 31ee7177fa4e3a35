"""Digits-like pictures from a file of records, by queues."""
from __future__ import print_function

import os
import tempfile
import time

import numpy as np
import tensorflow as tf

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_integer('num_epochs', 30, 'Number of epochs to run trainer.')
tf.app.flags.DEFINE_integer('batch_size', 20, 'Batch size.')
tf.app.flags.DEFINE_string('train_dir', tempfile.mkdtemp(), 'Directory with the training data.')
IMAGE_PIXELS = 16


def _int64_feature(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def _bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def convert_to(images, labels, name):
    filename = os.path.join(FLAGS.train_dir, name + '.tfrecords')
    writer = tf.python_io.TFRecordWriter(filename)
    for image, label in zip(images, labels):
        example = tf.train.Example(features=tf.train.Features(feature={
            'label': _int64_feature(int(label)),
            'image_raw': _bytes_feature(image.tobytes())}))
        writer.write(example.SerializeToString())
    writer.close()
    return filename


def read_and_decode(filename_queue):
    reader = tf.TFRecordReader()
    _, serialized_example = reader.read(filename_queue)
    features = tf.parse_single_example(
        serialized_example,
        # Defaults are not specified since both keys are required.
        features={
            'image_raw': tf.FixedLenFeature([], tf.string),
            'label': tf.FixedLenFeature([], tf.int64),
        })
    image = tf.decode_raw(features['image_raw'], tf.uint8)
    image.set_shape([IMAGE_PIXELS])
    # Convert from [0, 255] -> [-0.5, 0.5] floats.
    image = tf.cast(image, tf.float32) * (1. / 255) - 0.5
    label = tf.cast(features['label'], tf.int32)
    return image, label


def inputs(filename, batch_size, num_epochs):
    with tf.name_scope('input'):
        filename_queue = tf.train.string_input_producer([filename], num_epochs=num_epochs)
        image, label = read_and_decode(filename_queue)
        images, sparse_labels = tf.train.shuffle_batch(
            [image, label], batch_size=batch_size, num_threads=2,
            capacity=1000 + 3 * batch_size, min_after_dequeue=20)
        return images, sparse_labels


def inference(images, hidden_units):
    with tf.name_scope('hidden1'):
        weights = tf.Variable(
            tf.truncated_normal([IMAGE_PIXELS, hidden_units],
                                stddev=1.0 / np.sqrt(float(IMAGE_PIXELS))), name='weights')
        biases = tf.Variable(tf.zeros([hidden_units]), name='biases')
        hidden1 = tf.nn.relu(tf.matmul(images, weights) + biases)
    with tf.name_scope('softmax_linear'):
        weights = tf.Variable(tf.truncated_normal([hidden_units, 2], stddev=0.1), name='weights')
        biases = tf.Variable(tf.zeros([2]), name='biases')
        return tf.matmul(hidden1, weights) + biases


def run_training(filename):
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        images, labels = inputs(filename, FLAGS.batch_size, FLAGS.num_epochs)
        logits = inference(images, 8)
        cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits, name='xentropy')
        loss = tf.reduce_mean(cross_entropy, name='xentropy_mean')
        tf.summary.scalar('loss', loss)
        global_step = tf.Variable(0, name='global_step', trainable=False)
        train_op = tf.train.GradientDescentOptimizer(0.3).minimize(loss, global_step=global_step)
        summary_op = tf.summary.merge_all()
        init_op = tf.group(tf.global_variables_initializer(), tf.local_variables_initializer())
        saver = tf.train.Saver()
        sess = tf.Session()
        sess.run(init_op)
        summary_writer = tf.summary.FileWriter(FLAGS.train_dir, sess.graph)
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        losses = []
        try:
            step = 0
            while not coord.should_stop():
                start_time = time.time()
                _, loss_value = sess.run([train_op, loss])
                duration = time.time() - start_time
                losses.append(loss_value)
                if step % 100 == 0:
                    tf.logging.info('Step %d: loss = %.2f (%.3f sec)', step, loss_value, duration)
                    summary_str = sess.run(summary_op)
                    summary_writer.add_summary(summary_str, step)
                    summary_writer.flush()
                step += 1
        except tf.errors.OutOfRangeError:
            saver.save(sess, os.path.join(FLAGS.train_dir, 'model.ckpt'), global_step=step)
        finally:
            # When done, ask the threads to stop.
            coord.request_stop()
        # Wait for threads to finish.
        coord.join(threads)
        summary_writer.close()
        sess.close()
        return losses[0], np.mean(losses[-5:])


def main(_):
    rng = np.random.RandomState(0)
    pictures = rng.randint(0, 255, [100, IMAGE_PIXELS]).astype(np.uint8)
    answers = (pictures[:, :8].sum(1, dtype=int) > pictures[:, 8:].sum(1, dtype=int)).astype(int)
    filename = convert_to(pictures, answers, 'train')
    first, last = run_training(filename)
    print(first, last)


if __name__ == '__main__':
    tf.app.run()
