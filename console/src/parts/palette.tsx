/** Ctrl+K: go to anything. `/` focuses the filter of a page, `?` shows the keys. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ask } from '../api'
import { go } from '../router'
import { collection, shared, slug } from '../shell'
import { kept, store, useStore } from '../store'
import { Dialog } from './ui'
import { PAGES } from './column'

const opened = store<'' | 'palette' | 'help'>('')

export const openPalette = () => opened.set('palette')

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

addEventListener('keydown', (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
    event.preventDefault()
    opened.set(opened.get() === 'palette' ? '' : 'palette')
    return
  }
  if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return
  if (event.key === '?') opened.set('help')
  if (event.key === '/') {
    const filter = document.querySelector<HTMLElement>('[data-filter]')
    if (filter) {
      event.preventDefault()
      filter.focus()
    }
  }
})

interface Item {
  title: string
  doc: string
  path: string
}

const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$|^\d{1,18}$/i

function useItems(): Item[] {
  const { model } = useStore(shared)
  return useMemo(() => {
    const items: Item[] = PAGES.map((page) => ({ title: page.title, doc: page.doc, path: page.id }))
    for (const resource of model?.resources ?? []) {
      items.push({ title: resource.many, doc: resource.doc ?? 'Rows', path: `data/${slug(resource)}` })
      if (resource.verbs.create) items.push({ title: `New ${resource.one}`, doc: 'Create a row', path: `data/${slug(resource)}?new=1` })
      for (const action of resource.actions.filter((each) => each.on === 'collection'))
        items.push({ title: `${resource.many}: ${action.name}`, doc: action.doc ?? 'Action', path: `data/${slug(resource)}?action=${action.name}` })
    }
    for (const saved of kept<{ name: string; id: string }[]>('tabs', [])) items.push({ title: saved.name, doc: 'Saved request', path: `request?tab=${saved.id}` })
    return items
  }, [model])
}

/** What begins with the words comes first, then what has them in its title, then in its description. */
function byTitle(items: Item[], words: string): Item[] {
  const rank = ({ title }: Item) => (title.toLowerCase().startsWith(words) ? 0 : title.toLowerCase().includes(words) ? 1 : 2)
  return items.toSorted((a, b) => rank(a) - rank(b))
}

export function Palette() {
  const shown = useStore(opened)
  return shown === 'palette' ? <PaletteBody /> : null
}

function PaletteBody() {
  const items = useItems()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const [rows, setRows] = useState<Item[]>([])
  const list = useRef<HTMLUListElement>(null)
  const wanted = text.trim().toLowerCase()
  useEffect(() => {
    setAt(0)
    if (!ID.test(wanted)) return setRows([])
    const stop = new AbortController()
    void findRow(wanted, stop.signal).then(setRows, () => setRows([]))
    return () => stop.abort()
  }, [wanted])
  const matching = items.filter((item) => wanted.split(/\s+/).every((word) => `${item.title} ${item.doc}`.toLowerCase().includes(word)))
  const found = [...rows, ...byTitle(matching, wanted)].slice(0, 50)
  const open = (item: Item | undefined) => {
    if (!item) return
    opened.set('')
    go(item.path)
  }
  const keys = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step && found.length) {
      event.preventDefault()
      const next = (at + step + found.length) % found.length
      setAt(next)
      list.current?.children[next]?.scrollIntoView({ block: 'nearest' })
    }
    if (event.key === 'Enter') {
      event.preventDefault()
      open(found[at])
    }
  }
  return (
    <Dialog title="Go to" onClose={() => opened.set('')}>
      <input
        class="palette-input"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found[at] ? `palette-${at}` : undefined}
        aria-label="Page, resource, action, saved request, or the id of a row"
        placeholder="Page, resource, action, or the id of a row"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={keys}
      />
      <ul class="palette-list" id="palette-list" role="listbox" aria-label="Places" ref={list}>
        {found.map((item, n) => (
          <li key={item.path + item.title} id={`palette-${n}`} role="option" aria-selected={n === at} onClick={() => open(item)} onMouseMove={() => setAt(n)}>
            <span>{item.title}</span>
            <span class="soft">{item.doc}</span>
          </li>
        ))}
      </ul>
      {!found.length && <p class="soft">Nothing has this name.</p>}
    </Dialog>
  )
}

/** The row with an id, of whatever resource. */
async function findRow(id: string, signal: AbortSignal): Promise<Item[]> {
  const model = shared.get().model
  if (!model) return []
  const readable = model.resources.filter((resource) => resource.verbs.read).slice(0, 20)
  const found = await Promise.all(
    readable.map(async (resource) => {
      try {
        const row = await ask<Record<string, unknown>>('GET', `${collection(resource)}/${id}`, { signal })
        const label = resource.label ? String(row[resource.label] ?? id) : id
        return { title: label, doc: resource.one, path: `data/${slug(resource)}/${id}` }
      } catch {
        return null
      }
    }),
  )
  return found.filter((item) => item !== null)
}

const KEYS: [string, string][] = [
  ['Ctrl K', 'go to a page, a resource, an action or a row'],
  ['/', 'filter the table'],
  ['?', 'this help'],
  ['Ctrl Enter', 'send the request'],
  ['Shift Alt F', 'format the document'],
  ['Ctrl Space', 'complete'],
  ['Enter, F2', 'edit a cell; Enter saves, Esc gives up, Tab saves and goes on'],
  ['Arrows', 'move in a table or in the diagram'],
]

export function Help() {
  const shown = useStore(opened)
  if (shown !== 'help') return null
  return (
    <Dialog title="Keys" onClose={() => opened.set('')}>
      <dl class="keys">
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
