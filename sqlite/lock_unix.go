//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package sqlite

func newKernelLock(path string) (kernelLock, error) { return newFlockDir(path) }
