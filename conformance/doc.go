// Package conformance is what the two conformance kits share: the checks of a kit, how
// they are run, and the report of what was observed (section 8 of the draft).
//
// A report states observations for the versions and the scenarios that were tried. It
// never certifies anything: structural validity, binding validity, behaviour and
// adoption are separate claims.
//
// Package clientkit checks a client as a process, package servicekit a live service;
// both give a Report, which has writers for people (text, HTML), for programs (JSON,
// described by ReportSchema) and for CI (JUnit). A Baseline keeps known failures apart.
// Not the job of this package: talking to either. It imports package agentic,
// internal/escape and internal/strictjson.
package conformance
