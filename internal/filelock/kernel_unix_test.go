//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package filelock

// kernelLocks are the locks that this system can have.
var kernelLocks = map[string]func(path string) (kernelLock, error){
	"own":   newKernelLock,
	"flock": func(path string) (kernelLock, error) { return newFlockDir(path) },
}
