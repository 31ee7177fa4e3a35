"""Values that go from device to device."""
