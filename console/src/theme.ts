/** Light, dark, or as the system is. */
import { keep, kept, store } from './store'

export type Theme = 'system' | 'light' | 'dark'

export const theme = store<Theme>(kept<Theme>('theme', 'system'))

export function applyTheme(next: Theme = theme.get()): void {
  theme.set(next)
  keep('theme', next)
  if (next === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = next
}
