package pgtest

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// programs are the two that a cluster needs.
type programs struct{ initdb, postgres string }

var errNoPrograms = errors.New("PostgreSQL's programs initdb and postgres are neither in PATH nor in " + debian + ": " +
	"apt-get install postgresql, or set PATH; AGENTIC_TEST_POSTGRES=URL names a server instead, for tests that do not restart it")

// debian is where Debian keeps the programs of each version.
const debian = "/usr/lib/postgresql/*/bin"

// findPrograms prefers PATH, and takes the highest version of other places.
func findPrograms(places string) (programs, error) {
	dirs, err := filepath.Glob(places)
	if err != nil {
		return programs{}, err
	}
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	for _, dir := range append([]string{""}, dirs...) {
		initdb, err1 := exec.LookPath(filepath.Join(dir, "initdb"))
		postgres, err2 := exec.LookPath(filepath.Join(dir, "postgres"))
		if err1 == nil && err2 == nil {
			return programs{initdb, postgres}, nil
		}
	}
	return programs{}, errNoPrograms
}

// version is the N of /usr/lib/postgresql/N/bin; a name such as 9.6 counts as 0.
func version(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}
