package filelock

var kernelLocks = map[string]func(path string) (kernelLock, error){"own": newKernelLock}
