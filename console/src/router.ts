/** Addresses: `/console/data/orders?sort=-total` is the page `data` with the rest `['orders']` and its query. */
import { prefix } from './api'
import { store, useStore } from './store'

export interface Place {
  page: string
  rest: string[]
  query: URLSearchParams
}

const home = `${prefix}/console`

function read(): Place {
  const path = location.pathname.startsWith(home) ? location.pathname.slice(home.length) : location.pathname
  const [page = '', ...rest] = path.split('/').filter(Boolean).map(decodeURIComponent)
  return { page, rest, query: new URLSearchParams(location.search) }
}

const place = store<Place>(read())

export const usePlace = () => useStore(place)

export const to = (path: string) => `${home}/${path}`

export function go(path: string, replace = false): void {
  const url = to(path)
  if (replace) history.replaceState(null, '', url)
  else history.pushState(null, '', url)
  place.set(read())
  if (!replace) scrollTo(0, 0)
}

/** The query of this page, changed; an empty value takes a parameter away. */
export function setQuery(changes: Record<string, string | null>, replace = true): void {
  const query = new URLSearchParams(location.search)
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value)
    else query.delete(name)
  }
  const text = query.toString()
  const url = location.pathname + (text ? `?${text}` : '')
  if (replace) history.replaceState(null, '', url)
  else history.pushState(null, '', url)
  place.set(read())
}

addEventListener('popstate', () => place.set(read()))

/** Links of the console change the page without loading it. */
document.addEventListener('click', (event) => {
  const link = (event.target as Element | null)?.closest?.('a')
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return
  const url = new URL(link.href)
  if (link.target || url.origin !== location.origin || !url.pathname.startsWith(`${home}/`) || link.hasAttribute('download')) return
  if (url.pathname === location.pathname && url.hash) return
  event.preventDefault()
  go(url.pathname.slice(home.length + 1) + url.search + url.hash)
})
