"""ONNX models as parts of graphs."""
