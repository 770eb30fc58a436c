package page

import (
	"context"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
)

const (
	// mostThumbnails is how many terminals of a list have one, and mostThumbnail how many bytes it has.
	mostThumbnails = 12
	mostThumbnail  = 8 << 10

	// thumbnailPatience bounds how long the screens of a list are asked for.
	thumbnailPatience = 2 * time.Second
)

// thumbnail is what was on the screen of a terminal when it had printed so many bytes, and had that size.
type thumbnail struct {
	printed int64
	size    terminal.Size
	text    string
}

// thumbnails puts the screens of the last terminals of a list into it. Those that have not changed are not asked for again. A terminal
// whose screen cannot be had has none, and is asked for the next time.
func (h *Handler) thumbnails(ctx context.Context, c *remote.Client, of which, list []terminal.Info, out []terminalJSON) {
	ctx, cancel := context.WithTimeout(ctx, thumbnailPatience)
	defer cancel()
	defer context.AfterFunc(ctx, func() { closeClient(c) })() // The methods of terminals take no context. The list is there.
	for i := max(len(list)-mostThumbnails, 0); i < len(list) && ctx.Err() == nil; i++ {
		info := list[i]
		key := of.key() + "\x00" + info.ID
		h.mu.Lock()
		known, ok := h.thumbs[key]
		h.mu.Unlock()
		if !ok || known.printed != info.Bytes || known.size != info.Size {
			shot, err := c.Terminal(info.ID).Screen()
			if err != nil || shot.Screen == nil {
				continue
			}
			known = thumbnail{info.Bytes, info.Size, strings.ToValidUTF8(cut(shot.Text(), mostThumbnail), "")}
			h.mu.Lock()
			if len(h.thumbs) >= mostTerminals {
				clear(h.thumbs) // They are asked for again, those that somebody looks at.
			}
			h.thumbs[key] = known
			h.mu.Unlock()
		}
		out[i].Screen = known.text
	}
}
