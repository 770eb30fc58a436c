package page

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed assets/*.html assets/*.css assets/*.mjs assets/*.svg assets/vendor/*.css assets/vendor/*.mjs assets/vendor/*.LICENSE
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

	".LICENSE": "text/plain; charset=utf-8",
}

// assets are the page's files by the paths of requests. They are looked up in this table, and in no file system: no path leads out of it.
var assets = sync.OnceValue(func() map[string]asset {
	table := make(map[string]asset)
	err := fs.WalkDir(files, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		table[strings.TrimPrefix(name, "assets")] = asset{contentTypes[path.Ext(name)], content}
		return err
	})
	if err != nil {
		panic("page: " + err.Error()) // They are in the program.
	}
	table["/"] = table["/index.html"]
	return table
})

func serveAsset(w http.ResponseWriter, r *http.Request) {
	a, ok := assets()[r.URL.Path]
	if !ok {
		refuse(w, http.StatusNotFound, "there is no such file")
		return
	}
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.content)))
	_, _ = w.Write(a.content) // If the browser is gone, nobody misses it.
}
