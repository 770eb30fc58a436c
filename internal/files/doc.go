// Package files makes, opens and gives away the files that limpet shares with a bash: in
// directories in which a command may have replaced any file by something else. It also reports
// a disk that is full, or cannot be written.
//
// Whatever is opened by name is opened below an [os.Root], whatever symlinks say, and is a
// regular file. All of it is safe for concurrent use, as far as files are.
package files
