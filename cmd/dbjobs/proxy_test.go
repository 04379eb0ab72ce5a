package main

import (
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/dbjobs/dbjobs/cmd/internal/settings"
)

// proxy is a connection between the program and a server that can have the faults of networks: it refuses, drops, or is
// silent.
type proxy struct {
	address string
	server  string
	mu      sync.Mutex
	refused bool
	pairs   []*pair
	sent    func(b []byte) // called with the bytes that go to the server
}

// pair is a connection through the proxy.
type pair struct {
	client, server net.Conn
	silent         chan struct{} // closed: no byte gets through any more, and neither side learns of it
}

func newProxy(t testing.TB, server string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: l.Addr().String(), server: server}
	t.Cleanup(func() {
		l.Close()
		p.drop()
	})
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(client)
		}
	}()
	return p
}

// behindProxy returns a proxy before the database, and the variables of a program that goes through it.
func (c *cloud) behindProxy(t testing.TB) (p *proxy, env func(name string) (string, bool)) {
	u, err := url.Parse(c.url)
	if err != nil {
		t.Fatal(err)
	}
	p = newProxy(t, u.Host)
	u.Host = p.address
	variables := map[string]string{settings.URLVariable: u.String()}
	return p, func(name string) (text string, set bool) {
		text, set = variables[name]
		return text, set
	}
}

func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	p.mu.Lock()
	if err != nil || p.refused {
		p.mu.Unlock()
		client.Close()
		if err == nil {
			server.Close()
		}
		return
	}
	c := &pair{client, server, make(chan struct{})}
	p.pairs = append(p.pairs, c)
	p.mu.Unlock()
	go c.copy(client, server, nil)
	c.copy(server, client, p.sent)
}

// copy forwards the bytes that come, until an end or silence.
func (c *pair) copy(to, from net.Conn, seen func([]byte)) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-c.silent:
			return
		default:
		}
		if seen != nil && n > 0 {
			seen(buffer[:n])
		}
		if _, broken := to.Write(buffer[:n]); broken != nil || err != nil {
			to.Close() // also if one side was killed, which ends with a reset
			return
		}
	}
}

func (p *proxy) refuse(refused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = refused
}

// drop closes the open connections, and counts them.
func (p *proxy) drop() (n int) {
	for _, c := range p.take() {
		if c.server.Close() == nil { // the client had not gone by itself
			n++
		}
		c.client.Close()
	}
	return n
}

// silence makes the open connections hang for ever.
func (p *proxy) silence() {
	for _, c := range p.take() {
		close(c.silent)
		c.server.Close()
	}
}

func (p *proxy) take() []*pair {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.pairs
	p.pairs = nil
	return list
}
