/** Small parts that every page uses. */
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { Failure } from '../api'
import { store, useStore } from '../store'

export function Loading({ what = 'Loading…' }: { what?: string }) {
  return (
    <p class="loading" role="status">
      <span class="spinner" aria-hidden="true" />
      {what}
    </p>
  )
}

export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  const status = error instanceof Failure ? error.status : 0
  const message = error instanceof Error ? error.message : String(error)
  const hint =
    status === 401 ? 'Sign in, or look as someone who may.' : status === 403 ? 'Your role may not do this. The page Rules says who may.' : status === 429 ? 'Wait a moment.' : null
  return (
    <div class="problem" role="alert">
      <strong>{status ? `${status} · ` : ''}{message}</strong>
      {hint && <p>{hint}</p>}
      {retry && <button onClick={retry}>Try again</button>}
    </div>
  )
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  )
}

export function Heading({ title, doc, children }: { title: ComponentChildren; doc?: string | null | undefined; children?: ComponentChildren }) {
  return (
    <header class="heading">
      <div class="heading-words">
        <h1 tabIndex={-1}>{title}</h1>
        {doc && <p class="soft">{doc}</p>}
      </div>
      <div class="heading-tools">{children}</div>
    </header>
  )
}

/** Tabs with panels: arrows move, as the ARIA pattern says. */
export function Tabs(props: { label: string; tabs: { id: string; title: ComponentChildren }[]; at: string; onChange: (id: string) => void; children: ComponentChildren; tools?: ComponentChildren }) {
  const base = useId()
  const list = useRef<HTMLDivElement>(null)
  const move = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (!step) return
    event.preventDefault()
    const now = props.tabs.findIndex((tab) => tab.id === props.at)
    const next = props.tabs[(now + step + props.tabs.length) % props.tabs.length]
    if (!next) return
    props.onChange(next.id)
    requestAnimationFrame(() => list.current?.querySelector<HTMLElement>('[aria-selected=true]')?.focus())
  }
  return (
    <div class="tabs">
      <div class="tabs-head">
        <div role="tablist" aria-label={props.label} ref={list} onKeyDown={move}>
          {props.tabs.map((tab) => (
            <button
              key={tab.id}
              role="tab"
              id={`${base}-${tab.id}`}
              aria-selected={tab.id === props.at}
              aria-controls={`${base}-panel`}
              tabIndex={tab.id === props.at ? 0 : -1}
              onClick={() => props.onChange(tab.id)}
            >
              {tab.title}
            </button>
          ))}
        </div>
        {props.tools}
      </div>
      <div role="tabpanel" id={`${base}-panel`} aria-labelledby={`${base}-${props.at}`} class="tabs-panel" tabIndex={0}>
        {props.children}
      </div>
    </div>
  )
}

/** A modal dialog: the browser's own, so focus and Escape work. */
export function Dialog({ title, onClose, children, wide }: { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean }) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const dialog = element.current
    if (dialog && !dialog.open) {
      dialog.showModal()
      const inputs = '.dialog-body > :not(.dialog-head) :is(input, select, textarea), .dialog-body > input'
      const first = dialog.querySelector<HTMLInputElement>(inputs)
      const chosen = first?.type === 'radio' ? dialog.querySelector<HTMLElement>('input[type=radio]:checked') : null
      ;(chosen ?? first)?.focus()
    }
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={element}
      class={wide ? 'wide' : undefined}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onClick={(event) => event.target === element.current && onClose()}
    >
      <div class="dialog-body">
        <div class="dialog-head">
          <h2 id={id}>{title}</h2>
          <button class="quiet icon" aria-label="Close" onClick={onClose}>
            ✕
          </button>
        </div>
        {children}
      </div>
    </dialog>
  )
}

export function Copy({ text, label = 'Copy' }: { text: string | (() => string); label?: string }) {
  return (
    <button
      class="quiet"
      onClick={() => void navigator.clipboard.writeText(typeof text === 'string' ? text : text()).then(() => say('Copied.'), () => say('The browser did not allow copying.'))}
    >
      {label}
    </button>
  )
}

export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      <pre tabIndex={0} aria-label={label} role="region">{text}</pre>
      <Copy text={text} />
    </div>
  )
}

const said = store<{ text: string; n: number }>({ text: '', n: 0 })

/** Says something that passes: saved, copied, sent. */
export const say = (text: string) => said.set((now) => ({ text, n: now.n + 1 }))

export function Said() {
  const { text, n } = useStore(said)
  const [shown, show] = useState(false)
  useEffect(() => {
    if (!text) return
    show(true)
    const later = setTimeout(() => show(false), 4000)
    return () => clearTimeout(later)
  }, [n])
  return (
    <div class={shown ? 'said shown' : 'said'} role="status" aria-live="polite">
      {shown ? text : ''}
    </div>
  )
}

export function Switch({ label, on, onChange }: { label: string; on: boolean; onChange: (on: boolean) => void }) {
  return (
    <label class="switch">
      <input type="checkbox" role="switch" checked={on} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  )
}
