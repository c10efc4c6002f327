/** A value that components can watch. */
import { useEffect, useState } from 'preact/hooks'

export interface Store<T> {
  get: () => T
  set: (next: T | ((now: T) => T)) => void
  watch: (changed: () => void) => () => void
}

export function store<T>(initial: T): Store<T> {
  let value = initial
  const watchers = new Set<() => void>()
  return {
    get: () => value,
    set: (next) => {
      value = typeof next === 'function' ? (next as (now: T) => T)(value) : next
      for (const each of [...watchers]) each()
    },
    watch: (changed) => {
      watchers.add(changed)
      return () => watchers.delete(changed)
    },
  }
}

export function useStore<T>(from: Store<T>): T {
  const [value, setValue] = useState<{ now: T }>({ now: from.get() })
  useEffect(() => {
    const look = () => setValue((known) => (known.now === from.get() ? known : { now: from.get() }))
    look() // it may have changed between rendering and this moment
    return from.watch(look)
  }, [from])
  return value.now
}

/** What was kept in this browser; a browser that keeps nothing gives the default. */
export function kept<T>(name: string, otherwise: T): T {
  try {
    const text = localStorage.getItem(`diptych.${name}`)
    return text === null ? otherwise : (JSON.parse(text) as T)
  } catch {
    return otherwise
  }
}

export function keep(name: string, value: unknown): void {
  try {
    localStorage.setItem(`diptych.${name}`, JSON.stringify(value))
  } catch {
    // Full or switched off: the page works without.
  }
}
