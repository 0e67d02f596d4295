package wiretest

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// serve2 speaks HTTP/2 until the connection ends. Once the fault has made it
// silent it only counts.
func (c *conn) serve2() {
	c.framer = http2.NewFramer(c.tls, c.tls)
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if c.s.due(c, nil) {
		c.s.strike(c, nil)
	} else {
		c.frame(func(f *http2.Framer) { f.WriteSettings() })
	}
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.tls, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	open := map[uint32]*arrival{}
	for {
		f, err := c.framer.ReadFrame()
		if err != nil {
			return
		}
		a := open[f.Header().StreamID]
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() && !c.silent.Load() {
				c.frame(func(w *http2.Framer) { w.WriteSettingsAck() })
			}
			continue
		case *http2.PingFrame:
			if !f.IsAck() && !c.silent.Load() {
				c.frame(func(w *http2.Framer) { w.WritePing(true, f.Data) })
			}
			continue
		case *http2.MetaHeadersFrame:
			if a != nil { // trailers
				a.whole = f.StreamEnded()
				a.update()
				break
			}
			a = &arrival{c: c, stream: f.StreamID}
			open[f.StreamID] = a
			a.takeHeaders(f)
		case *http2.DataFrame:
			if a == nil {
				continue
			}
			a.body += len(f.Data())
			a.whole = f.StreamEnded()
			a.update()
		default:
			continue
		}
		if c.s.due(c, a) {
			c.s.strike(c, a)
		}
		if a.settled || c.silent.Load() {
			continue
		}
		if a.whole {
			c.respond(a, http.StatusOK)
			continue
		}
		if d, ok := f.(*http2.DataFrame); ok && d.Length > 0 {
			c.frame(func(w *http2.Framer) {
				w.WriteWindowUpdate(0, d.Length)
				w.WriteWindowUpdate(d.StreamID, d.Length)
			})
		}
		if a.expects {
			a.expects = false
			c.inform(a, http.StatusContinue)
		}
	}
}

// takeHeaders takes the header section of a request of HTTP/2.
func (a *arrival) takeHeaders(f *http2.MetaHeadersFrame) {
	if f.PseudoValue("method") == http.MethodPost {
		a.begin()
	}
	for _, field := range f.Fields {
		a.header += len(field.Name) + len(field.Value)
		switch {
		case strings.EqualFold(field.Name, Header):
			a.key = strings.Trim(field.Value, `"`)
		case field.Name == "content-length":
			a.length, _ = strconv.Atoi(field.Value)
		case field.Name == "expect":
			a.expects = strings.EqualFold(field.Value, "100-continue")
		}
	}
	a.headed, a.whole = true, f.StreamEnded()
	a.update()
}

// frame writes frames; an error is the client's, and shows in what comes next.
func (c *conn) frame(write func(*http2.Framer)) {
	c.writing.Lock()
	defer c.writing.Unlock()
	write(c.framer)
}

// headers2 sends a header section; lines are "Name: value".
func (c *conn) headers2(stream uint32, status int, lines []string, end bool) {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	e.WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(status)})
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		e.WriteField(hpack.HeaderField{Name: strings.ToLower(name), Value: value})
	}
	c.frame(func(f *http2.Framer) {
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: end})
	})
}

func (c *conn) respond2(a *arrival, status int, lines []string) {
	c.headers2(a.stream, status, append(lines, "Content-Type: application/json"), false)
	c.frame(func(f *http2.Framer) { f.WriteData(a.stream, true, []byte(okBody)) })
}
