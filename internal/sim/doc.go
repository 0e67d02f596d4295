// Package sim runs the real engine (package client) against models of everything around
// it, in one process and in virtual time, and lets fail what can fail: deterministically,
// from one number.
//
// A run is a world of one to three hosts, the ledger that they share (by leases, or by
// the locks of one machine), the network and the service of a publisher. Every effect is a
// step, and at every step something can happen: a host is paused past its lease, crashes
// and comes back, or its caller gives up; the ledger's clock jumps; a write of the ledger
// fails before or after it takes effect; requests and answers are lost, late, doubled, or
// changed for others; the service decides late, refuses, crashes, forgets, answers from an
// older state, or breaks its promises. What happens is chosen, and 0 is always the harmless
// choice. The choices come from a seed, or from a list; the list of a failing run is shrunk
// to a small one.
//
// The hosts are coroutines, and one of them runs at a time. No clock, goroutine or order
// of a map decides anything, so the same seed gives the same run, byte for byte (Trace).
//
// An oracle compares what the ledger and the service hold, what is sent and what is
// returned with a plain model of the draft's promises (Invariants), after every step. At
// the end of a run everything works again, and what is open has to come to what the service
// holds; after the window it has to be handed over. Faults put into the engine's seams
// (Plants) show that the oracle sees.
//
// Its job is finding runs that break a promise. It is not about HTTP, SQL or JSON: wire
// level, drivers and parsers have tests of their own, and processes and power cuts are
// internal/proof's. It imports agentic, client, and its own choice and durable.
package sim
