//go:build unix

package hosts

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// proxy forwards connections to one address, and can be cut.
type proxy struct {
	to [2]string // network and address
	ln net.Listener

	mu    sync.Mutex
	mode  proxyMode
	conns map[net.Conn]bool
}

type proxyMode int

const (
	open   proxyMode = iota
	cut              // every connection is closed, and no new one made
	silent           // nothing comes through, and nobody is told
)

func newProxy(t testing.TB, listen string, to [2]string) *proxy {
	t.Helper()
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{to: to, ln: ln, conns: map[net.Conn]bool{}}
	go p.accept()
	t.Cleanup(func() { _ = ln.Close(); p.set(cut) })
	return p
}

func (p *proxy) accept() {
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return
		}
		go p.serve(c)
	}
}

func (p *proxy) serve(c net.Conn) {
	up, err := net.Dial(p.to[0], p.to[1])
	if err != nil {
		_ = c.Close()
		return
	}
	if !p.add(c, up) {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { p.pump(up, c) })
	wg.Go(func() { p.pump(c, up) })
	wg.Wait()
	p.mu.Lock()
	delete(p.conns, c)
	delete(p.conns, up)
	p.mu.Unlock()
}

func (p *proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.mode == cut {
			_ = c.Close()
			continue
		}
		p.conns[c] = true
	}
	return p.mode != cut
}

// pump copies one way. What arrives while the proxy is silent is lost, and so is
// the connection, though nobody is told before the next byte after it.
func (p *proxy) pump(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	swallowed := false
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		mode := p.mode
		p.mu.Unlock()
		if n > 0 && mode == silent {
			swallowed = true
		} else if n > 0 {
			if swallowed {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) set(m proxyMode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
	if m == cut {
		for c := range p.conns {
			_ = c.Close()
		}
	}
}

// forward makes addresses of another network namespace reachable on loopback of
// this one, for as long as the process lives.
func forward(listen, to string) error {
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				up, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer up.Close()
				done := make(chan struct{}, 2)
				for _, way := range [][2]net.Conn{{c, up}, {up, c}} {
					go func() { _, _ = io.Copy(way[0], way[1]); done <- struct{}{} }()
				}
				<-done // either end of it is the end of both
			}()
		}
	}()
	return nil
}

// namespace is a network namespace with one link to this one. The zero value is
// the namespace of the test itself.
type namespace struct {
	name   string
	link   string // this side of the link
	parent string // address of this side
}

var errNoNamespace = errors.New("no network namespaces can be made here")

// newNamespace makes one, or gives errNoNamespace when this machine or user cannot.
func newNamespace(t testing.TB, i int) (namespace, error) {
	t.Helper()
	ns := namespace{
		name:   fmt.Sprintf("agentic-%d-%d", os.Getpid(), i),
		link:   fmt.Sprintf("agt%d-%d", os.Getpid()%10000000, i),
		parent: address(i, 1),
	}
	if err := ip("netns", "add", ns.name); err != nil {
		return namespace{}, fmt.Errorf("%w: %w", errNoNamespace, err)
	}
	t.Cleanup(func() { _ = ip("netns", "del", ns.name) }) // the link goes with it
	for _, args := range [][]string{
		{"link", "add", ns.link, "type", "veth", "peer", "name", "host0", "netns", ns.name},
		{"addr", "add", ns.parent + "/30", "dev", ns.link},
		{"link", "set", ns.link, "up"},
		{"-n", ns.name, "addr", "add", address(i, 2) + "/30", "dev", "host0"},
		{"-n", ns.name, "link", "set", "host0", "up"},
		{"-n", ns.name, "link", "set", "lo", "up"},
	} {
		if err := ip(args...); err != nil {
			return namespace{}, fmt.Errorf("%w: %w", errNoNamespace, err)
		}
	}
	return ns, nil
}

// address is that of one end of a link; every process has others.
func address(i, end int) string {
	pid := os.Getpid()
	return fmt.Sprintf("10.%d.%d.%d", 64+pid>>8&63, pid&255, 4*i+end)
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %v: %w: %s", args, err, out)
	}
	return nil
}

// command is a program in the namespace.
func (ns namespace) command(program string) *exec.Cmd {
	if ns.name == "" {
		return exec.Command(program)
	}
	return exec.Command("ip", "netns", "exec", ns.name, program)
}

// reach is the address under which the namespace sees this one.
func (ns namespace) reach() string {
	if ns.name == "" {
		return "127.0.0.1"
	}
	return ns.parent
}
