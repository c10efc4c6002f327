/** A CodeMirror editor for GraphQL, for REST requests, or for JSON. */
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type CompletionSource } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json, jsonParseLinter } from '@codemirror/lang-json'
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { linter } from '@codemirror/lint'
import { EditorState, type Extension, StateEffect, StateField } from '@codemirror/state'
import { Decoration, type DecorationSet, drawSelection, EditorView, hoverTooltip, highlightActiveLine, keymap, lineNumbers, placeholder } from '@codemirror/view'
import { tags as t } from '@lezer/highlight'
import { graphql, updateSchema } from 'cm6-graphql'
import { getHoverInformation, Position } from 'graphql-language-service'
import type { GraphQLSchema } from 'graphql'
import { useEffect, useRef } from 'preact/hooks'
import { nonce } from '../api'
import { restLanguage } from './rest-language'

export interface Mark {
  from: number
  to: number
  message: string
}

const colours = HighlightStyle.define([
  { tag: [t.keyword, t.definitionKeyword, t.operatorKeyword], color: 'var(--left)' },
  { tag: [t.propertyName, t.definition(t.propertyName)], color: 'var(--accent)' },
  { tag: t.typeName, color: 'var(--right)' },
  { tag: [t.number, t.bool, t.atom], color: 'var(--warn)' },
  { tag: t.string, color: 'var(--good)' },
  { tag: [t.attributeName, t.variableName], color: 'var(--right)' },
  { tag: [t.comment, t.punctuation, t.separator], color: 'var(--soft)' },
])

const look = EditorView.theme({
  '&': { backgroundColor: 'var(--paper)', color: 'var(--ink)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-content': { caretColor: 'var(--ink)', padding: '0.5rem 0' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-gutters': { backgroundColor: 'var(--paper)', color: 'var(--soft)', border: '0' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
  '&.cm-focused .cm-activeLine, &.cm-focused .cm-activeLineGutter': { backgroundColor: 'color-mix(in srgb, var(--accent-wash) 45%, transparent)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--accent-wash)' },
  '.cm-tooltip': { backgroundColor: 'var(--paper)', color: 'var(--ink)', border: '1px solid var(--line)', borderRadius: '5px', boxShadow: 'var(--shadow-deep)', maxWidth: '32rem' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--accent-ink)' },
  '.cm-completionDetail': { color: 'inherit', opacity: '0.85' },
  '.cm-diagnostic': { padding: '0.4rem 0.6rem' },
  '.cm-hover': { padding: '0.4rem 0.6rem', whiteSpace: 'pre-wrap', fontSize: '0.8125rem' },
  '.cm-fault': { textDecoration: 'underline wavy var(--bad)', backgroundColor: 'var(--bad-wash)' },
  '.cm-placeholder': { color: 'var(--soft)' },
})

const setMarks = StateEffect.define<Mark[]>()

const marks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(now, transaction) {
    let next = now.map(transaction.changes)
    for (const effect of transaction.effects) {
      if (!effect.is(setMarks)) continue
      const end = transaction.newDoc.length
      const ranges = effect.value
        .map((mark) => ({ ...mark, from: Math.min(mark.from, end), to: Math.min(Math.max(mark.to, mark.from + 1), end) }))
        .filter((mark) => mark.from < mark.to)
        .sort((a, b) => a.from - b.from)
      next = Decoration.set(ranges.map((mark) => Decoration.mark({ class: 'cm-fault', attributes: { title: mark.message } }).range(mark.from, mark.to)))
    }
    return next
  },
  provide: (field) => EditorView.decorations.from(field),
})

function docsOnHover(schema: () => GraphQLSchema | undefined): Extension {
  return hoverTooltip((view, place) => {
    const known = schema()
    if (!known) return null
    const line = view.state.doc.lineAt(place)
    const found = getHoverInformation(known, view.state.doc.toString(), new Position(line.number - 1, place - line.from))
    const text = typeof found === 'string' ? found.trim() : ''
    if (!text) return null
    return {
      pos: place,
      create: () => {
        const dom = document.createElement('div')
        dom.className = 'cm-hover'
        dom.textContent = text
        return { dom }
      },
    }
  })
}

export interface EditorProps {
  text: string
  label: string
  language: 'graphql' | 'rest' | 'json'
  onChange: (text: string) => void
  onRun?: () => void
  onFormat?: () => void
  schema?: GraphQLSchema | undefined
  complete?: CompletionSource
  faults?: Mark[]
  hint?: string
  small?: boolean
}

export function Editor(props: EditorProps) {
  const element = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView | null>(null)
  const latest = useRef(props)
  latest.current = props
  /** Texts that were typed here and come back as a property: by then, more may have been typed. */
  const typed = useRef(new Set<string>())
  useEffect(() => {
    if (!element.current) return
    const language: Extension[] =
      props.language === 'graphql'
        ? [...graphql(undefined), docsOnHover(() => latest.current.schema)]
        : props.language === 'json'
          ? [json(), linter((each) => (each.state.doc.toString().trim() ? jsonParseLinter()(each) : []))]
          : [restLanguage]
    const made = new EditorView({
      parent: element.current,
      state: EditorState.create({
        doc: props.text,
        extensions: [
          EditorView.cspNonce.of(nonce),
          lineNumbers(),
          highlightActiveLine(),
          drawSelection(),
          history(),
          indentOnInput(),
          bracketMatching(),
          closeBrackets(),
          autocompletion(props.complete ? { override: [(context) => latest.current.complete?.(context) ?? null] } : {}),
          keymap.of([
            { key: 'Mod-Enter', run: () => (latest.current.onRun?.(), true) },
            { key: 'Shift-Alt-f', run: () => (latest.current.onFormat?.(), true) },
            ...closeBracketsKeymap,
            ...completionKeymap,
            ...historyKeymap,
            ...defaultKeymap,
          ]),
          syntaxHighlighting(colours),
          look,
          marks,
          ...language,
          EditorView.lineWrapping,
          placeholder(props.hint ?? ''),
          EditorView.contentAttributes.of({ 'aria-label': props.label }),
          EditorView.updateListener.of((update) => {
            if (!update.docChanged || update.transactions.some((each) => each.isUserEvent('set'))) return
            const text = update.state.doc.toString()
            typed.current.add(text)
            latest.current.onChange(text)
          }),
        ],
      }),
    })
    view.current = made
    return () => made.destroy()
  }, [])
  useEffect(() => {
    if (view.current && props.schema) updateSchema(view.current, props.schema)
  }, [props.schema])
  useEffect(() => {
    const now = view.current
    if (!now) return
    const isEcho = typed.current.has(props.text)
    const isSame = now.state.doc.toString() === props.text
    if (isSame || !isEcho) typed.current.clear()
    if (isSame || isEcho) return
    now.dispatch({ changes: { from: 0, to: now.state.doc.length, insert: props.text }, userEvent: 'set' })
  }, [props.text])
  useEffect(() => view.current?.dispatch({ effects: setMarks.of(props.faults ?? []) }), [props.faults])
  return <div class={props.small ? 'editor small' : 'editor'} ref={element} />
}
