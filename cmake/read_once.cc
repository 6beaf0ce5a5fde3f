// Nothing of its own: the target onesum_read_once needs a source to precompile headers for (OnesumRoom.cmake).
