package page

import (
	"embed"
	"net/http"
	"path"
	"strconv"
)

//go:embed assets/*.html assets/*.css assets/*.mjs assets/*.svg
var files embed.FS

// asset is a file of the page. None says anything secret, so that they need no token: a browser could not send one with them.
type asset struct {
	contentType string
	content     []byte
}

var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".mjs":  "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// assets are the page's files by the paths of requests. They are looked up in this table, and in no file system: no path leads out of it.
var assets = func() map[string]asset {
	table := make(map[string]asset)
	entries, err := files.ReadDir("assets")
	if err != nil {
		panic("page: " + err.Error()) // They are in the program.
	}
	for _, entry := range entries {
		content, err := files.ReadFile("assets/" + entry.Name())
		if err != nil {
			panic("page: " + err.Error()) // As above.
		}
		table["/"+entry.Name()] = asset{contentTypes[path.Ext(entry.Name())], content}
	}
	table["/"] = table["/index.html"]
	return table
}()

func serveAsset(w http.ResponseWriter, r *http.Request) {
	a, ok := assets[r.URL.Path]
	if !ok {
		refuse(w, http.StatusNotFound, "there is no such file")
		return
	}
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.content)))
	_, _ = w.Write(a.content) // If the browser is gone, nobody misses it.
}
