// The tests of the page by a real browser. A module of its own, so that what drives the
// browser is nothing that the library needs.
module github.com/limpet-sh/limpet/internal/page/browser

go 1.26.0

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/limpet-sh/limpet v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/clipperhouse/displaywidth v0.11.0 // indirect
	github.com/clipperhouse/uax29/v2 v2.7.0 // indirect
	github.com/creack/pty v1.1.24 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/gofrs/flock v0.13.1 // indirect
	github.com/google/renameio/v2 v2.0.2 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
	mvdan.cc/sh/v3 v3.14.1 // indirect
)

// The page is that of the library beside it. This module is never required by another one,
// so nobody's build sees the replacement.
replace github.com/limpet-sh/limpet => ../../../
