//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

func newKernelLock(path string) (kernelLock, error) { return newFlockDir(path) }
