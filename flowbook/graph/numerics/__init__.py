"""What kernels compute with: functions of arrays, bytes and numbers, which know no graph."""
