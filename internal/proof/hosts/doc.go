// Package hosts proves a fleet: agent hosts as processes, each in a network
// namespace of its own where one can be made, one PostgreSQL, and a driver that
// kills, pauses and cuts them off. It has tests only.
package hosts
