"""Parts of graphs as ONNX models."""
