/** Request: two leaves, GraphQL and REST. One is written, the other follows. */
import { useEffect, useState } from 'preact/hooks'
import { type Draft, emptyDraft, firstDraft, loadHistory, loadTabs, nameOf, type Past, remember, saveTabs, share } from '../parts/drafts'
import { Leaves } from '../parts/leaves'
import { takeLink } from '../parts/request-wish'
import { Dialog, Heading, say } from '../parts/ui'
import { useSchema } from '../parts/use-schema'
import { usePlace } from '../router'
import { current } from '../session'
import { shared } from '../shell'
import { useStore } from '../store'
import type { Model } from '../types'
import { timeOfDay } from '../words'

interface Drafts {
  tabs: Draft[]
  draft: Draft
  choose: (id: string) => void
  change: (changes: Partial<Draft>, whileOn?: Draft['side']) => void
  open: (draft: Draft) => void
  close: (id: string) => void
}

/** The requests that are being written, as tabs that this browser keeps. */
function useDrafts(model: Model | null): Drafts {
  const place = usePlace()
  const [tabs, setTabs] = useState<Draft[]>(() => {
    const fromLink = takeLink()
    const found = loadTabs()
    if (fromLink) return [fromLink, ...found]
    return found.length ? found : [model ? firstDraft(model) : emptyDraft()]
  })
  const [at, setAt] = useState(() => place.query.get('tab') ?? tabs[0]?.id ?? '')
  const draft = tabs.find((tab) => tab.id === at) ?? tabs[0] ?? emptyDraft()
  useEffect(() => saveTabs(tabs), [tabs])
  const open = (next: Draft) => {
    setTabs((now) => [...now, next])
    setAt(next.id)
  }
  useEffect(() => {
    const look = () => {
      const given = takeLink()
      if (given) open(given)
    }
    addEventListener('hashchange', look)
    return () => removeEventListener('hashchange', look)
  }, [])
  return {
    tabs,
    draft,
    open,
    choose: setAt,
    change: (changes, whileOn) => setTabs((now) => now.map((tab) => (tab.id === draft.id && (!whileOn || tab.side === whileOn) ? { ...tab, ...changes } : tab))),
    close: (id) =>
      setTabs((now) => {
        const rest = now.filter((tab) => tab.id !== id)
        return rest.length ? rest : [emptyDraft()]
      }),
  }
}

function copyLink(draft: Draft): void {
  const url = `${location.origin}${location.pathname}#r=${share(draft)}`
  navigator.clipboard.writeText(url).then(
    () => say('A link to this request is copied. It has no token in it.'),
    () => history.replaceState(null, '', url),
  )
}

export function RequestPage() {
  const { model, boot } = useStore(shared)
  const { as } = useStore(current)
  const { schema, load } = useSchema()
  const { tabs, draft, choose, change, open, close } = useDrafts(model)
  const [past, setPast] = useState<Past[]>(loadHistory)
  const [showPast, setShowPast] = useState(false)
  return (
    <>
      <Heading title="Request">
        {load && (
          <button class="quiet" title="The schema of this model is large: completion and checks need it" onClick={load}>
            Load completion
          </button>
        )}
        <button onClick={() => setShowPast(true)}>History</button>
        <button onClick={() => copyLink(draft)}>Share</button>
      </Heading>
      <div class="request-tabs" role="group" aria-label="Requests">
        {tabs.map((tab) => (
          <span key={tab.id} class={tab.id === draft.id ? 'request-tab on' : 'request-tab'}>
            <button aria-current={tab.id === draft.id ? 'true' : undefined} onClick={() => choose(tab.id)}>
              {nameOf(tab)}
            </button>
            <button class="icon" aria-label={`Close ${nameOf(tab)}`} onClick={() => close(tab.id)}>
              ✕
            </button>
          </span>
        ))}
        <button class="quiet" onClick={() => open(emptyDraft())}>
          + New
        </button>
      </div>
      <Leaves key={draft.id} draft={draft} change={change} schema={schema} as={as} dev={boot?.mode === 'dev'} onSent={(status) => setPast(remember(draft, status))} />
      {showPast && <HistoryDialog past={past} onClose={() => setShowPast(false)} onOpen={(each) => open({ ...each, id: emptyDraft().id })} />}
    </>
  )
}

function HistoryDialog({ past, onClose, onOpen }: { past: Past[]; onClose: () => void; onOpen: (past: Past) => void }) {
  return (
    <Dialog title="History" onClose={onClose}>
      {past.length === 0 && <p class="soft">What you send is listed here, in this browser only.</p>}
      <ul class="palette-list">
        {past.map((each) => (
          <li key={each.at}>
            <button
              class="quiet"
              onClick={() => {
                onOpen(each)
                onClose()
              }}
            >
              {nameOf(each)}
            </button>
            <span class="soft">
              {each.status} · {timeOfDay(each.at)}
            </span>
          </li>
        ))}
      </ul>
    </Dialog>
  )
}
