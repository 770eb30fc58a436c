package page

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
)

// mostQuery bounds the query of a request, in bytes.
const mostQuery = 1 << 10

// policy is the page's Content-Security-Policy: it loads its own files and nothing else, runs and styles nothing that stands in the HTML,
// and is shown in no frame. By 'self' not every browser means WebSockets, which are named beside it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'%s; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// setPolicy sets the policy of an answer, which allows WebSockets to an origin, that must be one of those that are answered; empty for a
// refusal.
func setPolicy(header http.Header, sockets string) {
	if sockets != "" {
		sockets = " " + sockets
	}
	header.Set("Content-Security-Policy", fmt.Sprintf(policy, sockets))
}

// setHeaders sets what each answer has, refusals too.
func setHeaders(header http.Header) {
	setPolicy(header, "")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
}

// isAPI reports whether a request is about sessions, and not for one of the page's files.
func isAPI(r *http.Request) bool {
	return r.URL.Path == "/api" || strings.HasPrefix(r.URL.Path, "/api/") || r.URL.Path == metricsPath
}

// refuses returns the status and the reason with which a request is refused; 0 if it is to be answered. The order matters: a request that
// another site has made learns nothing, not even whether its token is right.
func (h *Handler) refuses(r *http.Request) (status int, why string) {
	answers := r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, questionPath)
	stops := r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/api/jobs/") && strings.HasSuffix(r.URL.Path, "/stop")
	switch {
	case !h.hosts[r.Host]:
		// DNS rebinding: a name of another site that leads here. Its page would be of the same origin as this one.
		return http.StatusForbidden, fmt.Sprintf("nothing is answered for the host %.100q: open the link that limpet serve has printed", r.Host)
	case !h.fromHere(r):
		return http.StatusForbidden, "another site may not ask here"
	case (answers || stops) && r.Header.Get("Origin") == "": // Browsers send it with each POST.
		return http.StatusForbidden, "what changes something must have the Origin of the page"
	case r.Method != http.MethodGet && !answers && !stops:
		return http.StatusMethodNotAllowed, "only GET is answered, and POST for the answer to a question and for the stop of a job"
	case len(r.URL.RawQuery) > mostQuery:
		return http.StatusRequestURITooLong, fmt.Sprintf("the query is longer than %d bytes", mostQuery)
	case answers && (r.ContentLength < 0 || r.ContentLength > mostAnswer):
		return http.StatusRequestEntityTooLarge, fmt.Sprintf("an answer has a Content-Length of at most %d bytes", mostAnswer)
	case r.ContentLength != 0 && !answers:
		return http.StatusRequestEntityTooLarge, "a request has no body here"
	case isAPI(r) && r.URL.Path != terminalPath && !h.knows(r): // A WebSocket's is in its first message.
		return http.StatusUnauthorized, "the token is not that of this limpet serve: open the link that it has printed"
	}
	return 0, ""
}

// fromHere reports whether the page itself sends a request, as far as the browser tells. A program that is no browser tells nothing.
// The Origin is compared with a fixed list, and not with the Host, which another site can choose by its name.
func (h *Handler) fromHere(r *http.Request) bool {
	for _, origin := range r.Header.Values("Origin") {
		if !h.origins[origin] {
			return false
		}
	}
	if !isAPI(r) {
		return true // A link to the page may be anywhere.
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin"
}

// knows reports whether a request has the token.
func (h *Handler) knows(r *http.Request) bool {
	said, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && h.isToken(said)
}

func (h *Handler) isToken(said string) bool {
	hash := sha256.Sum256([]byte(said))
	return subtle.ConstantTimeCompare(hash[:], h.token[:]) == 1
}

// refusal is the body of an answer that is an error.
type refusal struct {
	Error string `json:"error"`
}

func refuse(w http.ResponseWriter, status int, why string) {
	if status == http.StatusMethodNotAllowed && w.Header().Get("Allow") == "" {
		w.Header().Set("Allow", http.MethodGet)
	}
	w.Header().Set("Connection", "close") // A body that was sent all the same is not waited for.
	jsonhttp.Write(w, status, refusal{why})
}
