package sqlite

var kernelLocks = map[string]func(path string) (kernelLock, error){"own": newKernelLock}
