// Package browser has the tests of limpet serve's page in a real browser, Debian's chromium without a window, or its headless shell. The page is
// served by the real program, in a state directory of its own, and what is on it comes from real sessions.
package browser
