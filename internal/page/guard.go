package page

import (
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

// posts reports whether a request changes something, as POST does at some paths, and how many bytes its body has at most.
func posts(r *http.Request) (posts bool, most int64) {
	path := r.URL.Path
	switch {
	case r.Method != http.MethodPost:
		return false, 0
	case strings.HasPrefix(path, questionPath):
		return true, mostAnswer
	case path == sharesPath:
		return true, mostWanted
	}
	return strings.HasPrefix(path, jobPath) && strings.HasSuffix(path, "/stop") || strings.HasPrefix(path, sharesPath+"/") && strings.HasSuffix(path, "/revoke"), 0
}

// refuses returns the status and the reason with which a request is refused; 0 if it is to be answered, with the rights of its token. The
// order matters: a request that another site has made learns nothing, not even whether its token is right.
func (h *Handler) refuses(r *http.Request) (as rights, status int, why string) {
	changes, most := posts(r)
	if status, why := h.refusesForm(r, changes, most); status != 0 {
		return rights{}, status, why
	}
	if !isAPI(r) || isSocket(r) { // A file is no secret; the token of a WebSocket is in its first message.
		return rights{}, 0, ""
	}
	query := r.URL.Query()
	switch as = h.rightsFor(r); {
	case as == rights{}:
		return as, http.StatusUnauthorized, wrongToken + ": open the link that it has printed, or ask for another share link"
	case !as.allow(needOf(r), query.Get("session"), query.Get("id")):
		return as, http.StatusForbidden, "this share link does not allow that"
	}
	return as, 0, ""
}

// wrongToken is what whoever has no token is told, the same as whoever has the one of a share that is over.
const wrongToken = "the token is not that of this limpet serve, or not valid any more"

// refusesForm is refuses as far as the token has no part in it.
func (h *Handler) refusesForm(r *http.Request, changes bool, most int64) (status int, why string) {
	switch {
	case !h.hosts[r.Host]:
		// DNS rebinding: a name of another site that leads here. Its page would be of the same origin as this one.
		return http.StatusForbidden, fmt.Sprintf("nothing is answered for the host %.100q: open the link that limpet serve has printed", r.Host)
	case !h.fromHere(r):
		return http.StatusForbidden, "another site may not ask here"
	case changes && r.Header.Get("Origin") == "": // Browsers send it with each POST.
		return http.StatusForbidden, "what changes something must have the Origin of the page"
	case r.Method != http.MethodGet && !changes:
		return http.StatusMethodNotAllowed, "only GET is answered, and POST for the answer to a question, the stop of a job, and share links"
	case len(r.URL.RawQuery) > mostQuery:
		return http.StatusRequestURITooLong, fmt.Sprintf("the query is longer than %d bytes", mostQuery)
	case r.ContentLength != 0 && most == 0:
		return http.StatusRequestEntityTooLarge, "a request has no body here"
	case r.ContentLength < 0 || r.ContentLength > most:
		return http.StatusRequestEntityTooLarge, fmt.Sprintf("what is sent has a Content-Length of at most %d bytes", most)
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
