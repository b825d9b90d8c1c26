def mean(values):
    return sum(values) / len(values)


def old_name(values):
    return sorted(values)[len(values) // 2]
