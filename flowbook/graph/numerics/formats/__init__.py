"""What is in the bytes of files: arrays, images, records of features."""
