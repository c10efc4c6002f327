/** Colours of a REST request: method, path, query, headers, and a body of JSON. */
import { StreamLanguage } from '@codemirror/language'

interface State {
  part: 'line' | 'headers' | 'body'
}

export const restLanguage = StreamLanguage.define<State>({
  startState: () => ({ part: 'line' }),
  blankLine: (state) => {
    if (state.part !== 'line') state.part = 'body'
  },
  token(stream, state) {
    if (stream.sol() && stream.match(/^#.*/)) {
      if (stream.current().startsWith('###')) state.part = 'line'
      return 'comment'
    }
    if (state.part === 'line') {
      if (stream.sol() && stream.match(/^[A-Z]+(?=\s|$)/)) return 'keyword'
      if (stream.match(/^[?&]/) || stream.match(/^[=,()[\];]/)) return 'punctuation'
      if (stream.match(/^"[^"]*"/)) return 'string'
      if (stream.match(/^[a-zA-Z_$][\w.$-]*/)) {
        endLine(stream, state)
        return stream.peek() === '=' || stream.peek() === '[' ? 'attributeName' : 'propertyName'
      }
      if (stream.match(/^-?\d[\w.-]*/)) {
        endLine(stream, state)
        return 'number'
      }
      stream.next()
      endLine(stream, state)
      return null
    }
    if (state.part === 'headers') {
      if (stream.sol() && stream.match(/^[\w-]+(?=:)/)) return 'attributeName'
      stream.skipToEnd()
      return 'string'
    }
    if (stream.match(/^"(?:[^"\\]|\\.)*"(?=\s*:)/)) return 'propertyName'
    if (stream.match(/^"(?:[^"\\]|\\.)*"/)) return 'string'
    if (stream.match(/^-?\d[\d.eE+-]*/)) return 'number'
    if (stream.match(/^(true|false|null)/)) return 'atom'
    stream.next()
    return null
  },
})

/** After the line with the method come headers. */
function endLine(stream: { eol: () => boolean }, state: State): void {
  if (stream.eol()) state.part = 'headers'
}
