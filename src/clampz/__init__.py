from clampz.model import Model
