/** The column at the left: pages, whom one looks as, theme, and signing out. On a phone it is a bar with a menu. */
import { useState } from 'preact/hooks'
import { to, usePlace } from '../router'
import { current, session } from '../session'
import { shared, slug } from '../shell'
import { useStore } from '../store'
import { applyTheme, type Theme, theme } from '../theme'
import { Mark } from './mark'
import { openPalette } from './palette'
import { ViewAs } from './view-as'

export const PAGES = [
  { id: 'request', title: 'Request', doc: 'Ask in GraphQL or in REST' },
  { id: 'data', title: 'Data', doc: 'Read and edit rows' },
  { id: 'live', title: 'Live', doc: 'Changes as they come' },
  { id: 'model', title: 'Model', doc: 'Resources, fields and relations' },
  { id: 'rules', title: 'Rules', doc: 'Who may do what' },
  { id: 'activity', title: 'Activity', doc: 'Recent and slow requests' },
  { id: 'admin', title: 'Admin', doc: 'Accounts, clients, keys' },
]

export function Column() {
  const place = usePlace()
  const { boot, model } = useStore(shared)
  const { name, as } = useStore(current)
  const [open, setOpen] = useState(false)
  const page = place.page || 'request'
  return (
    <header class="column">
      <div class="column-top">
        <a class="brand" href={to('request')}>
          <Mark />
          <span>{model?.title ?? boot?.title ?? 'Diptych'}</span>
        </a>
        <button class="menu quiet" aria-expanded={open} aria-controls="menu" onClick={() => setOpen(!open)}>
          Menu
        </button>
      </div>
      <div id="menu" class={open ? 'column-menu open' : 'column-menu'}>
        <button class="search-button" onClick={openPalette}>
          <span>Go to…</span>
          <kbd>Ctrl K</kbd>
        </button>
        <nav aria-label="Console" onClick={() => setOpen(false)}>
          <ul>
            {PAGES.map((each) => (
              <li key={each.id}>
                <a href={to(each.id)} aria-current={page === each.id ? 'page' : undefined}>
                  {each.title}
                </a>
                {each.id === 'data' && model && page === 'data' && (
                  <ul>
                    {model.resources.slice(0, 40).map((resource) => (
                      <li key={resource.name}>
                        <a href={to(`data/${slug(resource)}`)} aria-current={place.rest[0] === slug(resource) ? 'true' : undefined}>
                          {resource.many}
                        </a>
                      </li>
                    ))}
                    {model.resources.length > 40 && (
                      <li>
                        <a href={to('data')}>all {model.resources.length}</a>
                      </li>
                    )}
                  </ul>
                )}
              </li>
            ))}
          </ul>
        </nav>
        <div class="column-foot">
          <ViewAs />
          <label class="stack">
            <span>Theme</span>
            <ThemeChoice />
          </label>
          <p class="who">
            <span>{as && boot?.mode === 'dev' ? `as ${as}` : (name ?? model?.viewer?.name ?? (model?.viewer ? 'signed in' : 'not signed in'))}</span>
            <button class="quiet" onClick={() => session.signOut()}>
              {model?.viewer ? 'Sign out' : 'Sign in'}
            </button>
          </p>
        </div>
      </div>
    </header>
  )
}

function ThemeChoice() {
  const now = useStore(theme)
  return (
    <select value={now} onChange={(event) => applyTheme(event.currentTarget.value as Theme)}>
      <option value="system">As the system</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  )
}
