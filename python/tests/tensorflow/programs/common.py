"""What all programs begin with: TensorFlow with some devices, and who this worker is."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf

RANK, WORKERS = int(os.environ.get("ONESUM_RANK", "0")), int(os.environ.get("ONESUM_SIZE", "1"))
NAMES = [f"/job:worker/task:{rank}" for rank in range(WORKERS)]


def use_devices(count: int) -> list[str]:
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * count
    )
    return [f"CPU:{index}" for index in range(count)]
